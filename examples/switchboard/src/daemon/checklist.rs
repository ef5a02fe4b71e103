//! Checklists as models write them: `- [x] bake the cake`, a line for each item.

use acolyte_proto::event::{Checklist, ChecklistItem, ItemStatus};

use crate::text::shortened;

/// Most items.
const MAX_ITEMS: usize = 100;
/// The longest label, in characters.
const MAX_LABEL: usize = 200;

/// Parses a list. A line without a box is an item to do; empty lines are ignored.
pub fn parse(group: &str, title: &str, text: &str) -> Checklist {
    let title = title.trim();
    let title = if title.is_empty() { "Plan" } else { title };
    let mut list = Checklist::new(group.to_owned(), title.to_owned());
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    for (number, line) in (0_u64..).zip(lines.by_ref().take(MAX_ITEMS)) {
        let line = line.trim_start_matches(['-', '*']).trim_start();
        let (status, label) = read(line);
        let label = shortened(label.trim(), MAX_LABEL).into_owned();
        let item = ChecklistItem::new(format!("item_{}", number + 1), label, number);
        list.items.push(ChecklistItem { status, ..item });
    }
    let more = lines.count();
    if more > 0 {
        let label = format!("({more} more items)");
        let more = ChecklistItem::new("items", label, MAX_ITEMS as u64);
        list.items.push(more);
    }
    list
}

/// Parses the box before an item, and returns the text after it.
fn read(line: &str) -> (ItemStatus, &str) {
    let boxes = [
        ("[ ]", ItemStatus::Pending),
        ("[~]", ItemStatus::InProgress),
        ("[x]", ItemStatus::Done),
        ("[X]", ItemStatus::Done),
        ("[!]", ItemStatus::Failed),
    ];
    for (mark, status) in boxes {
        if let Some(label) = line.strip_prefix(mark) {
            return (status, label);
        }
    }
    (ItemStatus::Pending, line)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the box of a status.
    fn mark(status: &ItemStatus) -> &'static str {
        match status {
            ItemStatus::InProgress => "[~]",
            ItemStatus::Done => "[x]",
            ItemStatus::Failed => "[!]",
            _ => "[ ]",
        }
    }

    #[test]
    fn a_list_is_read_leniently() {
        let text = "- [x] one\n\n* [~] two\n[!] three\nfour\n  - [ ] five ";
        let list = parse("plan", " ", text);
        assert_eq!((&*list.group_id, &*list.group_title), ("plan", "Plan"));
        let items = list.items.iter();
        let items: Vec<_> = items
            .map(|item| format!("{} {} {}", item.order, mark(&item.status), item.label))
            .collect();
        let expected = [
            "0 [x] one",
            "1 [~] two",
            "2 [!] three",
            "3 [ ] four",
            "4 [ ] five",
        ];
        assert_eq!(items, expected);
        let long = parse("p", "t", &"x\n".repeat(200));
        assert_eq!(long.items.len(), MAX_ITEMS + 1);
        assert_eq!(long.items[MAX_ITEMS].label, "(100 more items)");
    }
}
