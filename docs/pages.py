"""Checks that the documentation page of each filter lists exactly the methods of its type, in plain HTML that needs no script.

Each method is listed below once, in the group of the types that have it.

python3 docs/pages.py             checks the pages in cargo's target folder
python3 docs/pages.py FOLDER      checks the pages in FOLDER

`cargo doc -p koel --all-features --no-deps` builds the pages."""

import html.parser
import os
import pathlib
import sys

BUILD = "cargo doc -p koel --all-features --no-deps"

READ = """contains count contains_batch count_members contains_iter hash len is_empty capacity load_factor size_in_bytes bits_per_item
    false_positive_rate measure_false_positive_rate hasher slots"""
PLAN = "params distinct kernel set_kernel"
CHANGE = "insert insert_unique insert_batch insert_unique_batch insert_iter insert_unique_iter clear remove remove_batch"
WRITE = "to_bytes write_to save snapshot_bytes"
LOAD = "from_bytes from_bytes_with read_from read_from_with load load_with"
MERGE = "merge union intersect try_clone"
VIEW = "over over_with over_prefix over_prefix_with verify to_filter data into_data"
GROW = "table_len table_bytes partitions shards buckets buckets_per_lookup"
LIMIT = "charged_bytes set_max_bytes shrink"

PAGES = {
    "struct.CuckooFilter": [READ, PLAN, CHANGE, WRITE, LOAD, MERGE, "new builder table_len to_table write_table"],
    "struct.FilterView": [READ, PLAN, WRITE, VIEW, "over_table over_table_with"],
    "struct.ElasticFilter": [READ, PLAN, CHANGE, WRITE, LOAD, MERGE, GROW, LIMIT,
                             "new builder insert_unordered into_shared snapshot_index read_snapshot"],
    "struct.ElasticView": [READ, PLAN, WRITE, VIEW, GROW],
    "struct.SharedFilter": [READ, PLAN, CHANGE, WRITE, LOAD, MERGE, GROW, LIMIT, "into_elastic"],
    "go/struct.GoFilter": [READ, PLAN, CHANGE, "filter has_victim into_filter encode save"],
    "redisbloom/struct.RedisBloomFilter": [READ, "remove remove_batch try_clone taken deleted sub_filters buckets bucket_size expansion "
                                           "max_iterations compact to_filter from_filter from_chunks chunks chunk_after from_dump "
                                           "read_dump to_dump write_dump save_dump"],
}


class Methods(html.parser.HTMLParser):
    """Collects the names of the methods in the section of inherent implementations."""

    def __init__(self):
        super().__init__()
        self.names, self.is_inherent = [], False

    def handle_starttag(self, tag, attributes):
        name = dict(attributes).get("id") or ""
        if name in ("implementations-list", "trait-implementations-list"):
            self.is_inherent = name == "implementations-list"
        if self.is_inherent and tag == "section" and name.startswith("method."):
            self.names.append(name.removeprefix("method."))


if len(sys.argv) > 2:
    sys.exit(f"{len(sys.argv) - 1} folders given; give one, or none for cargo's target folder")
root = pathlib.Path(__file__).resolve().parent.parent
folder = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else root / os.environ.get("CARGO_TARGET_DIR", "target") / "doc"
missing = [path for path in (folder / "koel" / f"{page}.html" for page in PAGES) if not path.is_file()]
if len(missing) == len(PAGES):
    sys.exit(f"{folder} has no pages of koel; build them: {BUILD}")
if missing:
    sys.exit(f"{missing[0]} is missing, but other pages are there; build all of them, with all features: {BUILD}")
has_errors = False
for page, groups in PAGES.items():
    methods = Methods()
    path = folder / "koel" / f"{page}.html"
    methods.feed(path.read_text(encoding="utf-8"))
    expected = " ".join(groups).split()
    for text, names in [("lists unexpected methods", set(methods.names) - set(expected)),
                        ("does not list", set(expected) - set(methods.names)),
                        ("lists twice", {name for name in methods.names if methods.names.count(name) > 1})]:
        if names:
            has_errors = True
            print(f"{page}.html {text}: {', '.join(sorted(names))}")
print(f"{len(PAGES)} pages compared")
sys.exit(has_errors)
