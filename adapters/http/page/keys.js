/* The keys of a stream, worst first, with a search. Only the page of the table that is shown is asked for; the search is the
 * stream's own (`like`), so it finds any of a million keys. */
"use strict";

(() => {
    const STEP = 15, MOST = 200;

    page.makeKeys = (view) => {
        const panel = view.node.querySelector(".keys");
        view.keys = {like: "", limit: STEP, due: 0, asked: 0, error: ""};
        let timer = 0;
        panel.querySelector("input").addEventListener("input", (event) => {
            clearTimeout(timer);
            view.keys.like = event.target.value;
            view.keys.limit = STEP;
            timer = setTimeout(() => {
                view.keys.due = 0;
                page.askKeys(view).catch(() => {});
            }, 150);
        });
        panel.querySelector(".more button").addEventListener("click", () => {
            view.keys.limit = Math.min(view.keys.limit + 35, MOST);
            view.keys.due = 0;
            page.askKeys(view).catch(() => {});
        });
    };

    const makeRow = () => page.make("tr", {}, page.make("th", {scope: "row"}, page.make("bdi", {})), ...Array.from({length: 5}, () => page.make("td", {class: "num"})));

    const updateRow = (row, k, regress) => {
        const cells = row.querySelectorAll("td");
        page.set(row.querySelector("bdi"), k.key === "" ? "(no key)" : k.key);
        page.set(cells[0], page.count(k.rows));
        page.set(cells[1], page.known(k.age) ? (k.age < 2 ? "now" : page.seconds(k.age) + " ago") : "–");
        page.set(cells[2], regress ? page.number(k.quality) : page.share(k.quality));
        page.set(cells[3], page.known(k.excess_error) ? (k.excess_error > 0 ? "+" : k.excess_error < 0 ? "−" : "") + page.share(Math.abs(k.excess_error)) : "–");
        page.set(cells[4], k.open ? k.open + " open of " + k.alerts : page.count(k.alerts));
        row.classList.toggle("is-bad", k.open > 0);
    };

    const draw = (view, answer) => {
        const panel = view.node.querySelector(".keys"), regress = String(answer.measure).startsWith("rmse"), found = answer.keys;
        page.set(panel.querySelector(".measure"), regress ? "RMSE" : "Accuracy");
        page.reconcile(panel.querySelector("tbody"), found, (k) => k.key, makeRow, (row, k) => updateRow(row, k, regress));
        const matching = answer.matching ?? found.length;
        page.set(panel.querySelector(".count"), view.keys.like ? page.count(matching) + " of " + page.count(answer.count) + " match" : page.count(answer.count) + " keys");
        page.show(panel.querySelector(".empty"), !found.length);
        page.set(panel.querySelector(".empty"), view.keys.like ? "No key has this in its name." : "No key yet: the first sample with a key begins it.");
        page.show(panel.querySelector(".scroll"), found.length > 0);
        page.show(panel.querySelector(".search"), answer.count > 0);
        page.show(panel.querySelector(".more button"), found.length < matching && view.keys.limit < MOST);
    };

    page.askKeys = (view) => page.paced(view.keys, "due", 3000, async () => {
        const keys = view.keys, turn = ++keys.asked;
        const answer = await page.get("/keys", {stream: view.name, sort: "quality", limit: keys.limit, like: keys.like});
        if (turn === keys.asked)
            draw(view, answer);
    });

    page.noKeys = (view) => {
        const panel = view.node.querySelector(".keys");
        page.show(panel.querySelector(".empty"), true);
        page.set(panel.querySelector(".empty"), "One model serves the whole stream. With a key (svmstream run --key machine) each machine has a model of its own, and is listed here.");
        for (const part of [".search", ".scroll", ".more button"])
            page.show(panel.querySelector(part), false);
    };
})();
