/* The figures of a stream next to its charts: the row of tiles, the weights that moved most, the members of the bank, the last
 * errors, and memory, journal and disk. Each asks at a pace of its own, and only while its stream is open and on the screen. A
 * request that the stream refuses (a bank that does not run) leaves the sentence that says why. */
"use strict";

(() => {
    /* ---- tiles: name, value, and what stands below it. `data-figure` names the status figure, exact in `data-value`. */

    const DAY = 86400;
    const learns = (view) => view.info.method !== "none";
    const against = (s, keys, text) => {
        const key = keys.find((k) => page.known(s[k]));
        return key ? "same as before " + text(s[key]) : "";
    };

    const quality = (s, view) => {
        if (page.known(s["rmse.w"]))
            return {name: "Error (rmse)", figure: "rmse.w", value: page.number(s["rmse.w"]), below: against(s, ["rmse_no_change.w", "rmse_no_change"], page.number)};
        if (!page.known(s["accuracy.w"]) && page.known(s.keys_accuracy))
            return {name: "Accuracy, all keys", figure: "keys_accuracy", value: page.share(s.keys_accuracy), below: "since the start"};
        return {name: "Accuracy", figure: "accuracy.w", value: page.share(s["accuracy.w"]),
            below: page.known(s["accuracy.w"]) ? against(s, ["accuracy_no_change.w", "accuracy_no_change"], page.share) : learns(view) ? "no labels yet" : "method none"};
    };

    const TILES = [
        (s) => ({name: "Rate", figure: "rate", value: page.rate(s.rate), unit: "samples/s", below: page.count(s.seen) + " seen"}),
        quality,
        // Published ones, as in the list: several detectors may have one alert. A rate of the first hours would be made of one event.
        (s, view) => ({name: "Alerts open", figure: "alerts_open", exact: view.info.alerts_open, value: page.count(view.info.alerts_open),
            below: page.known(s.alerts_per_day) && s.uptime >= DAY ? page.daily(s.alerts_per_day) : s.alert_budget ? "budget " + page.daily(s.alert_budget) : ""}),
        (s) => ({name: "Latency p50", figure: "latency_p50", value: page.seconds(s.latency_p50), below: "p99 " + page.seconds(s.latency_p99)}),
        (s) => ({name: "Refused", figure: "refused", value: page.count(s.refused), below: s.seen + s.refused > 0 ? page.percent(s.refused / (s.seen + s.refused)) + " of all" : ""}),
        (s) => ({name: "Memory", figure: "memory_predicted", value: page.bytes(s.memory_predicted), below: page.known(s.keys) ? page.count(s.keys) + " keys" : page.count(s.held) + " samples held"}),
        (s) => (page.known(s.disk_free) && s.disk_size > 0
            ? {name: "Disk free", figure: "disk_free", value: page.percent(s.disk_free / s.disk_size), below: page.bytes(s.disk_free)}
            : {name: "Disk", figure: "disk_free", value: "–", below: page.known(s.journal_bytes) ? "not known" : "no state kept"}),
    ];

    page.drawTiles = (view) => {
        const s = view.status, tiles = TILES.map((f) => f(s, view));
        page.reconcile(view.node.querySelector(".tiles"), tiles, (t) => TILES[tiles.indexOf(t)] && tiles.indexOf(t),
            () => page.make("div", {class: "tile"}, page.make("dt", {}), page.make("dd", {class: "value"}, page.make("b", {}), page.make("span", {class: "unit"})), page.make("dd", {class: "below"})),
            (node, t) => {
                page.set(node.querySelector("dt"), t.name);
                page.set(node.querySelector("b"), t.value);
                page.set(node.querySelector(".unit"), t.unit ? " " + t.unit : "");
                page.set(node.querySelector(".below"), t.below);
                page.attribute(node, "data-figure", t.figure);
                page.attribute(node, "data-value", t.exact ?? s[t.figure] ?? "");
            });
    };

    /* ---- memory, journal, disk */

    const STORAGE = [
        ["memory", (s) => page.bytes(s.memory_predicted)],
        ["samples held", (s) => page.count(s.held)],
        ["journal", (s) => page.known(s.journal_bytes) && page.bytes(s.journal_bytes)],
        ["not on disk yet", (s) => page.known(s.journal_undurable) && (s.journal_undurable ? page.count(s.journal_undurable) + " records, for " + page.seconds(s.journal_age) : "nothing")],
        ["since the checkpoint", (s) => page.known(s.checkpoint_age) && page.count(s.checkpoint_age) + " records"],
        ["checkpoints failed", (s) => page.known(s.checkpoints_failed) && page.count(s.checkpoints_failed)],
        ["disk", (s) => page.known(s.disk_size) && s.disk_size > 0 && page.bytes(s.disk_free) + " free of " + page.bytes(s.disk_size)],
        ["connections", (s) => page.known(s.connections) && page.count(s.connections)],
        ["replies lost", (s) => page.known(s.replies_lost) && page.count(s.replies_lost)],
        ["running for", (s) => page.known(s.uptime) && page.seconds(s.uptime)],
    ];

    const pair = () => page.make("div", {}, page.make("dt", {}), page.make("dd", {}));
    const fill = (node, [name, text]) => {
        page.set(node.querySelector("dt"), name);
        page.set(node.querySelector("dd"), text);
    };

    page.drawStorage = (view) => {
        const rows = STORAGE.map(([name, f]) => [name, f(view.status)]).filter(([, text]) => text);
        if (!page.known(view.status.journal_bytes))
            rows.splice(2, 0, ["journal", "none: --state.dir DIR keeps the state"]);
        page.reconcile(view.node.querySelector(".storage .facts"), rows, ([name]) => name, pair, fill);
    };

    const keyed = (view) => view.info.keys || page.known(view.status?.keys);

    /* ---- bars with numbers */

    const bar = () => page.make("li", {}, page.make("span", {class: "name"}, page.make("bdi", {})), page.make("span", {class: "track", "aria-hidden": "true"}, page.make("i", {})), page.make("span", {class: "figure"}));

    const SINCE = 600; // seconds that weights are compared over

    const takeWeights = (view, answer) => {
        const moved = answer.weights.map((w) => ({...w, change: w.now - (w.before ?? 0)})); // a feature that is new began with 0
        const still = moved.every((w) => w.change === 0), age = page.seconds(Math.round(answer.to - answer.from));
        drawWeights(view, moved, "No weights yet: they begin with the first labels.");
        page.set(view.node.querySelector(".weights .note"), !moved.length ? "" : "Score per unit of the feature" +
            (!(answer.to > answer.from) ? "; there is no earlier model to compare with yet." : still ? ". None has moved in " + age + "." : ", and its change in " + age + ", which the bar shows."));
    };

    const drawWeights = (view, moved, empty) => {
        const panel = view.node.querySelector(".weights"), change = (w) => w.change, most = Math.max(...moved.map((w) => Math.abs(change(w))), 1e-300);
        page.show(panel.querySelector(".empty"), !moved.length);
        page.set(panel.querySelector(".empty"), empty);
        page.reconcile(panel.querySelector(".bars"), moved, (w) => JSON.stringify([w.feature, w.class ?? null]), bar, (node, w) => {
            const part = change(w) / most, fill = node.querySelector("i");
            page.set(node.querySelector("bdi"), w.feature + (w.class !== null && w.class !== undefined ? " → " + w.class : ""));
            page.set(node.querySelector(".figure"), page.number(w.now) + " (" + page.signed(change(w)) + ")");
            fill.className = part < 0 ? "down" : "up";
            fill.style.width = (50 * Math.abs(part)).toFixed(1) + "%";
        });
    };

    /* ---- the bank */

    const share = (list, items, caption) => {
        list.setAttribute("aria-label", caption);
        const most = Math.max(...items.map((i) => i.share || 0), 1e-9);
        page.reconcile(list, items, (i) => i.name + "#" + i.nth, bar, (node, i) => {
            page.set(node.querySelector("bdi"), i.name);
            page.set(node.querySelector(".figure"), i.text);
            node.querySelector("i").className = "from-left";
            node.querySelector("i").style.width = (100 * (i.share || 0) / most).toFixed(1) + "%";
        });
    };

    const numbered = (items) => {
        const seen = new Map();
        for (const i of items) {
            i.nth = seen.get(i.name) || 0;
            seen.set(i.name, i.nth + 1);
        }
        return items;
    };

    const drawBank = (view, bank) => {
        view.bank = bank;
        const place = view.node.querySelector(".bank .tables"), regress = bank.task === "regress";
        if (!place.firstElementChild)
            place.append(page.make("h4", {}), page.make("ul", {class: "bars"}), page.make("p", {class: "more"}, page.make("button", {type: "button", onclick: () => {
                view.allMembers = !view.allMembers;
                drawBank(view, view.bank);
            }})), page.make("h4", {}, "Weights of the combinations in the answer"), page.make("ul", {class: "bars"}));
        const [members, experts] = place.querySelectorAll("ul"), voted = !regress && bank.members.some((m) => page.known(m.vote));
        page.set(place.querySelector("h4"), voted ? "Share of the votes, and recent error" : "Recent squared error, in variances of the target (shortest is best)");
        const FIRST = 10; // the others have next to nothing to say
        const rows = bank.members.map((m) => (voted ? {name: m.name, share: m.vote, text: page.percent(m.vote) + ", error " + page.percent(m.recent)}
            : {name: m.name, share: m.recent, text: page.number(m.recent)}));
        const ranked = numbered(rows.sort((a, b) => (voted ? b.share - a.share : a.share - b.share))), more = place.querySelector(".more button");
        share(members, view.allMembers ? ranked : ranked.slice(0, FIRST), "Members of the bank");
        page.show(more, ranked.length > FIRST);
        page.set(more, view.allMembers ? "Show the first " + FIRST : "Show all " + ranked.length);
        const rates = {rate: "base rate"};
        const last = (e) => (rates[e.name] || e.name) + (page.known(e.window) ? (e.window ? ", last " + page.count(e.window) : ", all samples") : page.known(e.keep) ? ", fading " + e.keep : "");
        const parts = (bank.mixture || bank.experts || []).map((e) => ({name: last(e), share: e.share, text: page.percent(e.share)}));
        share(experts, numbered(parts), "Combinations");
    };

    /* ---- errors */

    const drawErrors = (view, errors) => {
        const panel = view.node.querySelector(".errors");
        page.show(panel.querySelector(".empty"), !errors.length);
        page.set(panel.querySelector(".empty"), "Nothing was refused.");
        page.reconcile(panel.querySelector(".error-list"), errors.slice(0, 12), (e) => e.code,
            () => page.make("li", {}, page.make("b", {class: "count"}), page.make("code", {}), page.make("span", {class: "when"}), page.make("bdi", {class: "reason"})),
            (node, e) => {
                page.set(node.querySelector(".count"), page.count(e.count) + " ×");
                page.set(node.querySelector("code"), e.code);
                page.set(node.querySelector(".when"), page.known(e.ts) ? "last " + page.moment(e.ts, true) : "");
                page.set(node.querySelector(".reason"), e.reason || "");
            });
    };

    /* ---- what is asked for, how often */

    const refusal = (panel) => (view, error) => {
        const node = view.node.querySelector("." + panel + " .empty");
        page.show(node, true);
        page.set(node, error.message);
    };

    const noBank = (view, error) => {
        view.node.querySelector(".bank .tables").replaceChildren();
        page.show(view.node.querySelector(".bank .empty"), true);
        page.set(view.node.querySelector(".bank .empty"), error.code === "unavailable" || error.code === "not_supported"
            ? (keyed(view) ? "Each key has a model of its own, and no bank." : !learns(view) ? "Nothing is learned here (method none)."
                : banked(view) ? "No labels yet: the members are compared from the first one on." : "No bank here: one linear model serves. With method auto a bank of learners does.") : error.message);
    };

    const withBank = (view, answer) => {
        page.show(view.node.querySelector(".bank .empty"), false);
        drawBank(view, answer.bank || answer);
    };

    const banked = (view) => !keyed(view) && ["bank", "linear"].includes(view.status?.serving);

    const weighed = (view) => !keyed(view) && view.status.learned > 0;
    const noWeights = (view) => {
        page.set(view.node.querySelector(".weights .note"), "");
        drawWeights(view, [], keyed(view) ? "Each key has weights of its own: svmstream model show --key NAME prints them."
            : !learns(view) ? "Nothing is learned here (method none)." : "No weights yet: they begin with the first labels.");
    };

    const PANELS = [
        {every: 5000, path: "/weights", query: {since: SINCE, limit: 10}, draw: takeWeights, refused: refusal("weights"), fits: weighed, without: noWeights},
        {every: 15000, path: "/bank", query: {brief: true}, draw: withBank, refused: noBank,
            fits: (view) => banked(view) && view.status.learned > 0, without: (view) => noBank(view, {code: "unavailable"})},
        {every: 4000, path: "/errors", query: {}, draw: (view, answer) => drawErrors(view, answer.errors || []), refused: refusal("errors"), fits: () => true},
    ];

    page.askPanels = (view) => {
        view.due = view.due || PANELS.map(() => 0);
        return Promise.all(PANELS.map(async (panel, i) => {
            if (!view.status)
                return;
            if (!panel.fits(view))
                return panel.without(view);
            try {
                await page.paced(view.due, i, panel.every, async () => panel.draw(view, await page.get(panel.path, {stream: view.name, ...panel.query})));
            } catch (error) {
                if (error.lost)
                    throw error;
                panel.refused(view, error);
            }
        }));
    };

    page.panelsAgain = (view) => {
        view.due = null;
    };
})();
