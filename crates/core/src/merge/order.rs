//! The order of a list after an apply, for lists of type `set` and `map`, whose items have owners of their own.
//!
//! The items of the manifest get the order of the manifest. An item that only the live list has stays behind the same
//! live items where possible: live `x a b`, applied `b a` becomes `x b a`; live `a b c`, applied `c x a`
//! becomes `b c x a`. Both lists are traversed together. A live item that the manifest also contains, but further
//! down, is skipped until the manifest reaches it. The steps are those of `typed/merge.go` in
//! `sigs.k8s.io/structured-merge-diff` (4.4.1 to 6.3, which Kubernetes 1.30 to 1.36 contain): the rules above alone
//! allow other orders, too.

/// An item of the list after an apply, by its index in the live list, in the manifest, or in both.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct MergedItem {
    pub live: Option<usize>,
    pub intent: Option<usize>,
}

/// The order after an apply. `live` has an element for each item of the live list: the index of the same item in the
/// manifest, or `None` if the manifest does not contain it. The manifest has `intent` items, without duplicates. Of
/// duplicates in the live list that are also in the manifest, one remains, with the content of the manifest.
pub(super) fn merged_order(live: &[Option<usize>], intent: usize) -> Vec<MergedItem> {
    let mut live_of = vec![None; intent];
    let mut is_double = vec![false; intent];
    for (at, item) in live.iter().enumerate() {
        if let Some(item) = *item {
            is_double[item] |= live_of[item].is_some();
            live_of[item] = Some(at);
        }
    }
    let of_intent = |item: usize| MergedItem { live: live_of[item].filter(|_| !is_double[item]), intent: Some(item) };
    let next_shared = |from: usize| (from..intent).find(|item| live_of[*item].is_some());
    let mut places = Vec::with_capacity(live.len().max(intent));
    let (mut at, mut item) = (0, 0);
    let mut shared = next_shared(0);
    while at < live.len() || item < intent {
        match live.get(at).copied() {
            Some(Some(same)) if same == item => {
                places.push(of_intent(item));
                (at, item) = (at + 1, item + 1);
                shared = next_shared(item);
                continue;
            }
            Some(Some(other)) if item < intent && shared.is_some_and(|shared| shared != other) => {
                at += 1;
                continue;
            }
            Some(None) => {
                places.push(MergedItem { live: Some(at), intent: None });
                at += 1;
                continue;
            }
            Some(Some(written)) if written < item => at += 1,
            _ => {}
        }
        if item < intent {
            places.push(of_intent(item));
            item += 1;
            if shared.is_some_and(|shared| shared < item) {
                shared = next_shared(item);
            }
        }
    }
    places
}

/// Whether an apply keeps the order of the live list; the parameters are those of [`merged_order`].
pub fn keeps_order(live: &[Option<usize>], intent: usize) -> bool {
    let places = merged_order(live, intent);
    places.len() == live.len() && places.iter().enumerate().all(|(at, place)| place.live == Some(at))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn merged(live: &str, intent: &str) -> String {
        let of_live: Vec<Option<usize>> = live.chars().map(|item| intent.find(item)).collect();
        let chars = |text: &str| text.chars().collect::<Vec<char>>();
        let (live, wanted) = (chars(live), chars(intent));
        let name = |place: MergedItem| place.intent.map_or_else(|| live[place.live.unwrap()], |item| wanted[item]);
        merged_order(&of_live, wanted.len()).into_iter().map(name).collect()
    }

    #[test]
    fn the_items_of_the_manifest_get_its_order_and_the_others_stay() {
        for (live, intent, expected) in [
            ("ab", "ab", "ab"),
            ("ab", "ba", "ba"),
            ("ab", "cab", "cab"),
            ("abc", "cxa", "bcxa"),
            ("xab", "ba", "xba"),
            ("axb", "ba", "xba"),
            ("abx", "ba", "bxa"),
            ("", "ba", "ba"),
            ("ab", "", "ab"),
            ("xaya", "a", "xay"),
        ] {
            assert_eq!(merged(live, intent), expected, "{live} with {intent}");
        }
    }

    #[test]
    fn an_order_is_kept_if_only_other_items_are_between() {
        assert!(keeps_order(&[None, Some(0), None, Some(1)], 2));
        assert!(!keeps_order(&[Some(1), Some(0)], 2));
        assert!(!keeps_order(&[Some(0)], 2));
        assert!(!keeps_order(&[Some(0), Some(0)], 1));
    }
}
