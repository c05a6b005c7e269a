//! `FilterView<Vec<u8>>` cannot be changed
//! `view.to_filter()` copies them into a filter that can be changed

use koel::FilterView;

fn main() {
    let mut view = FilterView::over(Vec::new()).unwrap();
    view.insert("alice").unwrap();
}
