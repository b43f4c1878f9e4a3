/* Numbers with units, times in the viewer's zone, and the few verbs that touch the document.
 *
 * Every text that reaches the document goes through textContent: names of columns, keys and streams are chosen by somebody else,
 * and a column may well be called <script>. Characters that a reader cannot see but that turn text around or hide it (controls
 * and bidi marks) are shown by their number.
 *
 * The files of this folder are joined in the order of their names: this one first, turn.js last.
 *
 * Nodes are updated in place and only where the text differs, so a page that is open for an hour neither flickers nor loses
 * the selection, the focus or the place where somebody reads. */
"use strict";

const page = {};

(() => {
    const HIDDEN = /[\u0000-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g;

    page.clean = (text) =>
        String(text ?? "").replace(HIDDEN, (c) => (c === "\n" || c === "\t" ? " " : "\\u" + c.charCodeAt(0).toString(16).padStart(4, "0")));

    page.set = (node, text) => {
        const shown = page.clean(text);
        if (node.textContent !== shown)
            node.textContent = shown;
        return node;
    };

    page.show = (node, yes) => {
        if (node.hidden === yes)
            node.hidden = !yes;
    };

    page.attribute = (node, name, value) => {
        if (node.getAttribute(name) !== String(value))
            node.setAttribute(name, value);
    };

    /* An element with attributes and children; strings among the children become text. */
    page.make = (tag, attributes, ...children) => {
        const node = document.createElement(tag);
        for (const [name, value] of Object.entries(attributes || {}))
            if (name.startsWith("on"))
                node.addEventListener(name.slice(2), value);
            else if (value === true)
                node.setAttribute(name, "");
            else if (value !== false && value != null)
                node.setAttribute(name, value);
        for (const child of children)
            node.append(typeof child === "string" ? page.clean(child) : child);
        return node;
    };

    page.icon = (name) => {
        const space = "http://www.w3.org/2000/svg";
        const svg = document.createElementNS(space, "svg"), use = document.createElementNS(space, "use");
        svg.setAttribute("class", "icon");
        svg.setAttribute("aria-hidden", "true");
        use.setAttribute("href", "#i-" + name);
        svg.append(use);
        return svg;
    };

    /* Makes the children of `list` those of `items`, in their order: a child that is there already is kept, so it keeps its focus
     * and its state. */
    page.reconcile = (list, items, name, make, update) => {
        const held = new Map();
        for (const child of list.children)
            held.set(child.dataset.item, child);
        let place = list.firstElementChild;
        for (const item of items) {
            const id = String(name(item));
            let child = held.get(id);
            held.delete(id);
            if (!child) {
                child = make(item);
                child.dataset.item = id;
            }
            if (child === place)
                place = place.nextElementSibling;
            else
                list.insertBefore(child, place);
            update(child, item);
        }
        for (const child of held.values()) {
            child.closed?.();
            child.remove();
        }
    };

    /* ---- numbers */

    const grouped = new Intl.NumberFormat("en", {maximumFractionDigits: 0});
    const known = (x) => typeof x === "number" && isFinite(x);

    page.known = known;
    page.count = (x) => (known(x) ? grouped.format(Math.round(x)) : "–");

    page.number = (x) => {
        if (!known(x))
            return "–";
        const size = Math.abs(x);
        if (size >= 1e7 || (size > 0 && size < 1e-4))
            return x.toExponential(2).replace("e+", "e");
        return size >= 1000 ? grouped.format(x) : String(Number(x.toPrecision(3)));
    };

    // A number a day in the unit that makes it 1 or more: "3 a day", "1 a year".
    page.daily = (x) => {
        const [days, unit] = [[1, "day"], [7, "week"], [365.25 / 12, "month"]].find(([d]) => !known(x) || x === 0 || x * d >= 0.995) || [365.25, "year"];
        return page.number(known(x) && days > 1 ? Number((x * days).toPrecision(2)) : x) + " a " + unit;
    };

    page.share = (x) => (known(x) ? x.toFixed(3).replace(/^(-?)0\./, "$1.") : "–");
    page.percent = (x) => (known(x) ? Number((100 * x).toPrecision(2)) + " %" : "–");
    page.signed = (x) => (known(x) ? (x < 0 ? "−" : "+") + page.number(Math.abs(x)) : "–");
    // A rate fades after the last sample and is never quite 0: below one in an hour it counts as none.
    page.rate = (x) => (known(x) ? (x >= 100 ? grouped.format(x) : x < 1 / 3600 ? "0" : String(Number(x.toPrecision(2)))) : "–");

    page.bytes = (x) => {
        if (!known(x))
            return "–";
        const units = ["B", "kB", "MB", "GB", "TB", "PB"];
        let i = 0;
        for (; Math.abs(x) >= 999.5 && i < units.length - 1; i++)
            x /= 1000;
        return (i === 0 || x >= 100 ? Math.round(x) : Number(x.toPrecision(3))) + " " + units[i];
    };

    page.seconds = (x) => {
        if (!known(x))
            return "–";
        if (x === 0)
            return "0 s";
        if (x < 1e-3)
            return Number((1e6 * x).toPrecision(2)) + " µs";
        if (x < 1)
            return Number((1e3 * x).toPrecision(2)) + " ms";
        if (x < 60)
            return (x < 9.95 ? Number(x.toPrecision(2)) : Math.round(x)) + " s";
        const parts = [[86400, "d"], [3600, "h"], [60, "min"]];
        for (let i = 0; i < 3; i++) {
            const [size, unit] = parts[i];
            if (x < size)
                continue;
            const whole = Math.floor(x / size), rest = i < 2 ? Math.floor((x % size) / parts[i + 1][0]) : 0;
            return whole + " " + unit + (rest > 0 ? " " + rest + " " + parts[i + 1][1] : "");
        }
    };

    /* ---- times, in seconds since 1970 */

    const format = (options) => {
        const f = new Intl.DateTimeFormat("en-GB", {hourCycle: "h23", ...options});
        return (t) => f.format(new Date(1000 * t));
    };
    const day = format({weekday: "short", day: "numeric", month: "short"});
    const dated = format({day: "numeric", month: "short", year: "numeric"});
    page.clock = format({hour: "2-digit", minute: "2-digit"});
    page.second = format({hour: "2-digit", minute: "2-digit", second: "2-digit"});

    page.moment = (t, seconds) => {
        if (!known(t))
            return "–";
        const clock = seconds ? page.second(t) : page.clock(t), now = page.now();
        if (dated(t) === dated(now))
            return clock;
        return (Math.abs(now - t) < 180 * 86400 ? day(t) : dated(t)) + ", " + clock;
    };

    page.zone = () => {
        const name = Intl.DateTimeFormat().resolvedOptions().timeZone || "the zone of this device";
        const short = new Intl.DateTimeFormat("en-GB", {timeZoneName: "short"}).formatToParts(new Date()).find((p) => p.type === "timeZoneName");
        return short && short.value !== name ? name + " (" + short.value + ")" : name;
    };

    /* ---- levels: an icon and a word, so that colour never stands alone */

    const WORDS = {ok: "OK", notice: "Notice", quality: "Quality", warning: "Warning", bad: "Problem", serious: "Serious", wait: "Waiting"};
    const ICONS = {ok: "ok", notice: "notice", quality: "warning", warning: "warning", bad: "serious", serious: "serious", wait: "wait"};

    page.word = (level) => WORDS[level] || WORDS.notice;

    page.level = (node, level) => {
        page.attribute(node, "data-level", WORDS[level] ? level : "notice");
        page.attribute(node.querySelector("use"), "href", "#i-" + (ICONS[level] || "notice"));
        page.set(node.querySelector(".word"), page.word(level));
    };

    page.chip = (level) => {
        const node = page.make("span", {class: "level"}, page.icon("notice"), page.make("span", {class: "word"}));
        page.level(node, level);
        return node;
    };
})();
