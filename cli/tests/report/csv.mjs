// The rows behind a `data:` link.

const PREFIX = "data:text/csv;charset=utf-8;base64,";

// How many there are below the header; an error if it is no link to a table, or if they differ in length.
export function rowsOf(href) {
    if (!href.startsWith(PREFIX)) throw new Error("there is no link to it");
    const text = new TextDecoder("utf-8", { fatal: true }).decode(Buffer.from(href.slice(PREFIX.length), "base64"));
    const [header, ...rows] = parsed(text);
    const other = rows.findIndex(row => row.length !== header.length);
    if (other >= 0) throw new Error(`row ${other + 1} has ${rows[other].length} cells, and the header ${header.length}`);
    return rows.length;
}

// RFC 4180: cells in quotes may hold commas, ends of lines, and quotes written twice.
function parsed(text) {
    const rows = [];
    let row = [];
    for (const [, quoted, plain, end] of text.matchAll(/(?:"((?:[^"]|"")*)"|([^",\r\n]*))(,|\r?\n|$)/g)) {
        if (end === "" && row.length === 0 && !quoted && !plain) break;
        row.push(quoted?.replaceAll('""', '"') ?? plain);
        if (end !== ",") {
            rows.push(row);
            row = [];
        }
    }
    return rows;
}
