// Collects what the page shows. Runs in the browser, uses nothing outside this function, and returns plain data.

export function look() {
    const box = element => {
        const { left, top, right, bottom } = element.getBoundingClientRect();
        return { left, top, right, bottom };
    };
    // Boxes overlap if they share more than a pixel in both directions.
    const overlap = (a, b) =>
        Math.min(a.right, b.right) - Math.max(a.left, b.left) > 1 && Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 1;
    const within = (a, b) =>
        a.left >= b.left - 0.5 && a.right <= b.right + 0.5 && a.top >= b.top - 0.5 && a.bottom <= b.bottom + 0.5;

    const rgb = text => (text.match(/[\d.]+/g) ?? []).map(Number);
    const light = colour => {
        const [r, g, b] = colour.slice(0, 3).map(part => {
            const share = part / 255;
            return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
        });
        return 0.2126 * r + 0.7152 * g + 0.0722 * b + 0.05;
    };
    const contrast = (one, other) => Math.max(light(one), light(other)) / Math.min(light(one), light(other));
    const background = element => {
        for (let at = element; at; at = at.parentElement) {
            const colour = rgb(getComputedStyle(at).backgroundColor);
            if (colour.length === 3 || colour[3] === 1) return colour;
        }
        return [255, 255, 255];
    };
    const isDrawn = element => element instanceof SVGElement;

    // Collects each text with its contrast to the background and its size.
    const texts = [];
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    for (let node = walker.nextNode(); node; node = walker.nextNode()) {
        const parent = node.parentElement;
        if (!node.data.trim() || ["title", "desc", "STYLE", "SCRIPT"].includes(parent.tagName)) continue;
        const style = getComputedStyle(parent);
        const svg = parent.closest("svg");
        const scale = svg ? svg.getBoundingClientRect().width / svg.viewBox.baseVal.width : 1;
        texts.push({
            text: node.data.trim(),
            contrast: contrast(rgb(isDrawn(parent) ? style.fill : style.color), background(parent)) * (style.opacity === "1" ? 1 : 0),
            size: parseFloat(style.fontSize) * scale,
        });
    }

    const charts = [...document.querySelectorAll("figure svg[role=img]")].map(svg => {
        const frame = box(svg);
        const letters = [...svg.querySelectorAll("text")].map(element => ({ text: element.textContent.trim(), box: box(element) }));
        // A sloping line covers only a small part of its box, so points of the line are sampled. Horizontal and vertical lines have
        // boxes of no width. Text may cross the pale grid lines, so they are left out.
        const samples = line => {
            const matrix = line.getScreenCTM();
            const count = Math.ceil(line.getTotalLength() / 2);
            return Array.from({ length: count + 1 }, (_, n) => {
                const { x, y } = line.getPointAtLength(2 * n).matrixTransform(matrix);
                return { left: x, top: y, right: x, bottom: y };
            });
        };
        const lines = [...svg.querySelectorAll('polyline:not([stroke="#D9D9DE"]), line:not([stroke="#D9D9DE"])')];
        const shapes = [...[...svg.querySelectorAll("circle, polygon, rect")].map(box), ...lines.flatMap(samples)];
        const clashes = [];
        letters.forEach((one, place) => {
            letters.slice(0, place).forEach(other => overlap(one.box, other.box) && clashes.push(`${other.text} / ${one.text}`));
            const inner = { left: one.box.left + 2, right: one.box.right - 2, top: one.box.top + 2, bottom: one.box.bottom - 2 };
            const crosses = ({ left, top, right, bottom }) =>
                left < inner.right && right > inner.left && top < inner.bottom && bottom > inner.top;
            if (shapes.some(crosses)) clashes.push(`${one.text} / a line or a mark`);
        });
        return {
            section: svg.closest("section")?.id,
            label: svg.getAttribute("aria-label"),
            caption: svg.closest("figure").querySelector("figcaption")?.textContent,
            clipped: [...svg.closest("figure").querySelectorAll("figcaption")].some(text => text.scrollWidth > text.clientWidth),
            frame,
            letters: letters.length,
            cut: letters.filter(letter => !within(letter.box, frame)).map(letter => letter.text),
            clashes,
        };
    });

    return {
        background: background(document.body),
        ink: getComputedStyle(document.querySelector("svg text") ?? document.body).fill,
        scroll: document.documentElement.scrollWidth - document.documentElement.clientWidth,
        language: document.documentElement.lang,
        title: document.title,
        headings: [...document.querySelectorAll("h1, h2, h3")].map(heading => heading.tagName),
        findings: document.querySelectorAll("nav .finding").length,
        sections: [...document.querySelectorAll("section")].map(section => section.id),
        contents: [...document.querySelectorAll("nav a")].map(link => link.hash.slice(1)),
        warnings: [...document.querySelectorAll(".warning")].map(warning => warning.textContent),
        tables: [...document.querySelectorAll("table")].map(table => ({
            section: table.closest("section")?.id,
            rows: table.tBodies[0].rows.length,
        })),
        links: [...document.querySelectorAll("a[download]")].map(link => ({ name: link.download, href: link.getAttribute("href") })),
        texts,
        charts,
    };
}
