"""Reads the results of `koel experiment` with pandas: `python3 lab/examples/results.py docs/tuning fpr`.

Prints the columns with their units, and the mean of every number for each value of the first column.
docs/TUNING.md, "Experiments", describes the files. Needs pandas (`pip install pandas`).
"""

import json
import sys
from pathlib import Path

import pandas


def read(folder, name):
    """Returns the rows of an experiment, and the descriptions of their columns."""
    rows = pandas.read_csv(Path(folder) / f"{name}.csv")
    record = json.loads((Path(folder) / f"{name}.json").read_text(encoding="utf-8"))
    columns = pandas.DataFrame(record["columns"]).set_index("name")[["unit", "about"]]
    return rows, columns


def main(folder, name):
    rows, columns = read(folder, name)
    missing = [column for column in rows.columns if column not in columns.index]
    if missing:
        sys.exit(f"{folder}/{name}.json does not describe {', '.join(missing)}")
    print(columns.to_string())
    print()
    print(rows.groupby(rows.columns[0]).mean(numeric_only=True).T.to_string())


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(f"usage: {sys.argv[0]} FOLDER NAME, such as docs/tuning fpr")
    main(*sys.argv[1:])
