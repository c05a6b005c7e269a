// Ways to break the page: a name, the change, and the problem that the check must report.

const style = rule => html => html.replace("</style>", `${rule}</style>`);
const within = (from, to) => html => html.replace(from, to);
// Removes the content security policy, which would block the change.
const freely = change => html => change(html.replace(/<meta http-equiv[^>]*>/, ""));

export const breakages = [
    ["a script", within("</body>", "<script>1</script></body>"), /console: .*script/],
    ["a message", freely(within("</body>", "<script>console.warn('oh')</script></body>")), /console: oh/],
    ["an error", freely(within("</body>", "<script>throw new Error('oh')</script></body>")), /error: oh/],
    ["a picture from elsewhere", freely(within("</body>", "<img src='other.png'></body>")), /request: .*other\.png/],
    ["a missing chart", within(/<figure>.*?<\/figure>/s, ""), /: charts \[/],
    ["a chart without its role", within(' role="img"', ""), /: charts \[/],
    ["a chart without a caption", within(/<figcaption>.*?<\/figcaption>/s, ""), /: captions \[/],
    ["a chart of no size", style("figure:first-child svg { width: 1px }"), /no size/],
    ["text outside of its chart", within(/<text x="\d+"/, '<text x="400"'), /cut off/],
    ["text across other text", within(/(<text x="\d+" y="\d+"[^>]*>)(\d+)</, "$1$2 and very much more of it than there is room for<"), /cut off|overlap/],
    ["text on text", within(/(<svg.*?)(<text.*?<\/text>)/s, "$1$2$2"), /overlap/],
    ["a mark across text", within(/<circle cx="\d+" cy="\d+"/, '<circle cx="60" cy="24"'), /overlap: .* \/ a line or a mark/],
    ["small letters", within(/font-size="14"/, 'font-size="9"'), /360 px.*letters of/],
    ["small letters beside the charts", style("td { font-size: 8px }"), /letters of 8/],
    ["a page too wide", style("h1 { width: 400px }"), /360 px.*scrolls sideways/],
    ["a table too wide", style(".wide { overflow: visible }"), /1280 px.*scrolls sideways/],
    ["charts side by side on a phone", style(".charts { grid-template-columns: 1fr 1fr !important }"), /360 px.*(charts at|no size)/],
    ["charts below each other on a wide screen", style(".charts { display: block }"), /1280 px.*charts at/],
    ["a page that is never dark", style(":root { --page: #fff !important }"), /background: .*light and dark/],
    ["charts that are never dark", style("text { fill: #777 !important }"), /ink: .*light and dark/],
    ["pale text", style("figcaption { color: #888 }"), /light: contrast 3/],
    ["pale letters in charts", within(/(<text[^>]*)fill="#1D1D21"/, '$1fill="#999999"'), /light: contrast 2/],
    ["dark letters on dark", within('[fill="#1D1D21"]', "[fill=none]"), /dark: contrast 1/],
    ["rows that are missing", within(/(base64,)[^"]*/, `$1${btoa("a,b\n1,2\n")}`), /csv: 1 rows, and not/],
    ["rows cut off", within(/(base64,[^"]{4000})[^"]*/, "$1"), /csv: /],
    ["no rows at all", within(/ download="[^"]*"/, ""), /csv: there is no link/],
    ["a section that is missing", within(/<section.*?<\/section>/s, ""), /sections: /],
    ["contents that lead nowhere", within(/(<nav.*?href="#)/s, '$1no'), /contents: /],
    ["a table that is missing", within(/<tbody>.*?<\/tbody>/s, "<tbody></tbody>"), /: tables of/],
    ["a warning", within("</h2>", '</h2><p class="warning">oh</p>'), /warnings: .*oh/],
    ["a warning that is missing", within(/<p class="warning">.*?<\/p>/s, ""), /warnings: none/],
    ["findings that are missing", within(/<span class="finding">.*?<\/span>/gs, ""), /summary: 0 findings/],
    ["a caption that is clipped", style("figcaption { overflow: hidden; white-space: nowrap }"), /its caption is clipped/],
    ["two titles", within("</h2>", "</h2><h1>oh</h1>"), /headings: /],
    ["no language", within(' lang="en"', ""), /no language/],
];
