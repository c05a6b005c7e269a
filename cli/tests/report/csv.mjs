// Parses the table in a `data:` link.

const PREFIX = "data:text/csv;charset=utf-8;base64,";

// Returns the number of rows below the header. Throws an error if this is not a link to a table, or if rows differ in length.
export function rowsOf(href) {
    if (!href.startsWith(PREFIX)) throw new Error("there is no link to it");
    const text = new TextDecoder("utf-8", { fatal: true }).decode(Buffer.from(href.slice(PREFIX.length), "base64"));
    const [header, ...rows] = parsed(text);
    const other = rows.findIndex(row => row.length !== header.length);
    if (other >= 0) throw new Error(`row ${other + 1} has ${rows[other].length} cells, and the header ${header.length}`);
    return rows.length;
}

// Parses rows as in RFC 4180: cells in quotes may have commas, line ends, and quotes written twice.
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
