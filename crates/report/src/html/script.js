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
  if (!form) {
    return;
  }

  const findings = [...document.querySelectorAll('details.finding')];
  const search = form.elements.search;
  const shown = document.getElementById('shown');
  const texts = findings.map((finding) => finding.textContent.toLowerCase());
  const visible = () => findings.filter((finding) => !finding.hidden);

  const filter = () => {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    const severities = new Set([...form.querySelectorAll('input[name=severity]:checked')].map((box) => box.value));
    const {rule, object} = form.elements;
    findings.forEach((finding, at) => {
      const {severity, rule: itsRule, object: itsObject} = finding.dataset;
      finding.hidden = !(severities.has(severity)
        && (!rule.value || rule.value === itsRule)
        && (!object.value || object.value === itsObject)
        && words.every((word) => texts[at].includes(word)));
    });
    shown.textContent = `${visible().length} of ${findings.length} shown`;
  };
  form.addEventListener('input', filter);
  form.addEventListener('submit', (event) => event.preventDefault());
  form.addEventListener('reset', () => setTimeout(filter));
  document.getElementById('open').addEventListener('click', () => {
    const all = visible();
    const open = !all.every((finding) => finding.open);
    all.forEach((finding) => { finding.open = open; });
  });

  const move = (by) => {
    const all = visible();
    const at = all.indexOf(document.activeElement.closest('details.finding'));
    const next = all[at < 0 ? 0 : Math.min(Math.max(at + by, 0), all.length - 1)];
    next?.querySelector('summary').focus();
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
})();
