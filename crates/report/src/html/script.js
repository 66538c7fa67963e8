'use strict';
(() => {
  const root = document.documentElement;
  const form = document.querySelector('form');
  const copied = document.getElementById('copied');
  root.classList.add('script');

  const copy = async (button) => {
    const source = document.getElementById(button.dataset.of);
    try {
      await navigator.clipboard.writeText(source.textContent);
    } catch {
      // Where a page may not write the clipboard, the text is selected, ready to be copied.
      getSelection().selectAllChildren(source);
      copied.textContent = 'The text is selected: copy it.';
      return;
    }
    copied.textContent = 'Copied.';
  };
  document.addEventListener('click', (event) => {
    const button = event.target.closest('button.copy');
    if (button) {
      copy(button);
    }
  });

  // Opens what a link leads to, and everything around it.
  const reveal = () => {
    const place = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    for (let part = place; part; part = part.parentElement) {
      if (part.matches('details')) {
        part.open = true;
      }
    }
    place?.scrollIntoView();
  };
  addEventListener('hashchange', reveal);
  // A second click on the same link changes nothing in the address.
  document.addEventListener('click', (event) => {
    if (event.target.closest('a')?.hash === location.hash) {
      setTimeout(reveal);
    }
  });
  if (!form) {
    reveal();
    return;
  }

  const findings = [...document.querySelectorAll('.finding')];
  const objects = [...document.querySelectorAll('section.object')];
  const bumps = [...document.querySelectorAll('details.bump')];
  const search = form.elements.search;
  const shown = document.getElementById('shown');
  const texts = findings.map((finding) => finding.textContent.toLowerCase());
  const visible = () => findings.filter((finding) => !finding.hidden);

  const filter = () => {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    const severities = new Set([...form.querySelectorAll('input[name=severity]:checked')].map((box) => box.value));
    const {rule, object, breaks} = form.elements;
    const used = new Set();
    let count = 0;
    findings.forEach((finding, at) => {
      const {severity, rule: itsRule, breaks: itsBreaks} = finding.dataset;
      const section = finding.closest('section.object');
      const fits = severities.has(severity)
        && (!rule.value || rule.value === itsRule)
        && (!object.value || object.value === section.dataset.object)
        && (!breaks.value || itsBreaks.split(' ').includes(breaks.value))
        && words.every((word) => texts[at].includes(word) || section.dataset.object.includes(word));
      finding.hidden = !fits;
      if (fits) {
        count += 1;
        used.add(section);
      }
    });
    objects.forEach((section) => { section.hidden = !used.has(section); });
    // A fold hides nothing that was looked for.
    const looks = words.length > 0 || rule.value || breaks.value;
    bumps.forEach((bump) => {
      bump.hidden = !bump.querySelector('.finding:not([hidden])');
      bump.open ||= looks;
    });
    shown.textContent = `${count} of ${findings.length} shown`;
  };
  // A number of the matrix shows the findings that it counts. Any other link shows what it leads to.
  const choose = (link) => {
    const place = document.getElementById(link.hash.slice(1));
    if (link.dataset.breaks) {
      form.reset();
      form.elements.object.value = link.dataset.for;
      form.elements.breaks.value = link.dataset.breaks;
      filter();
    } else if (place?.closest('[hidden]')) {
      form.reset();
      filter();
    }
  };
  document.addEventListener('click', (event) => {
    const link = event.target.closest('a');
    if (link) {
      choose(link);
    }
  });
  form.addEventListener('input', filter);
  form.addEventListener('submit', (event) => event.preventDefault());
  form.addEventListener('reset', () => setTimeout(filter));
  document.getElementById('open').addEventListener('click', () => {
    const all = visible();
    const folded = all.filter((finding) => finding.matches('details'));
    const open = !folded.every((finding) => finding.open);
    folded.forEach((finding) => { finding.open = open; });
  });

  const move = (by) => {
    const all = visible();
    const at = all.indexOf(document.activeElement.closest('.finding'));
    const next = all[at < 0 ? 0 : Math.min(Math.max(at + by, 0), all.length - 1)];
    const bump = next?.closest('details.bump');
    if (bump) {
      bump.open = true;
    }
    const line = next?.querySelector('summary') ?? next;
    if (line === next && line) {
      line.tabIndex = -1;
    }
    line?.focus();
  };
  document.addEventListener('keydown', (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) {
      return;
    }
    if (event.key === 'Escape' && event.target === search) {
      search.value = '';
      filter();
      search.blur();
    } else if (event.target.matches('input, select, textarea')) {
      return;
    } else if (event.key === '/') {
      search.focus();
      event.preventDefault();
    } else if (event.key === 'j' || event.key === 'k') {
      move(event.key === 'j' ? 1 : -1);
    }
  });
  filter();
  reveal();
})();
