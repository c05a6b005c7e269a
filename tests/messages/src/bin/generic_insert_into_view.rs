//! `ElasticView<&[u8]>` cannot be changed
//! `view.to_filter()` copies them into a filter that can be changed

use koel::{ElasticView, Insert};

fn fill(filter: &mut impl Insert<str>) {
    filter.insert("alice").unwrap();
}

fn main() {
    let bytes: &[u8] = &[];
    fill(&mut ElasticView::over(bytes).unwrap());
}
