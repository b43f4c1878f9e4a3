#!/usr/bin/python3
# %% [markdown]
# # A stream in a notebook
#
# Cells of a notebook (Jupyter, VS Code) that also run as a script:
#
#     make python && PYTHONPATH=build/python examples/notebook.py [elec2.csv.gz]
#
# The data are elec2: whether the price of electricity in New South Wales rose or fell, every half hour of two and a half
# years. Without that file the weather data of this folder take its place.

# %%
import os
import sys
import tempfile

import svmstream
from svmstream import datasets

here = os.path.dirname(os.path.abspath(globals().get("__file__", "examples/notebook.py")))
elec2 = os.path.join(os.environ.get("DATA", os.path.join(here, "../data")), "elec2.csv.gz")
path = next((p for p in [*sys.argv[1:], elec2] if p.endswith(".csv.gz") and os.path.exists(p)),
            os.path.join(here, "weather.csv.gz"))
name = os.path.basename(path).split(".")[0]
print("data:", name)


def show(result, title):
    """The table and the plot: below the cell in a notebook, else as text and as a page in a file."""
    if "ipykernel" in sys.modules:
        from IPython.display import display
        return display(result)
    print("\n%s\n%s" % (title, result))
    page = os.path.join(tempfile.gettempdir(), "svmstream-%s.html" % title.split()[0])
    with open(page, "w", encoding="utf-8") as f:
        f.write("<!DOCTYPE html><meta charset=utf-8><meta name=color-scheme content='light dark'><title>%s</title>%s"
                % (title, result._repr_html_()))
    print("plot: " + page)


# %% [markdown]
# ## Each row is predicted, then learned
#
# `Auto` has nothing to set. The plot compares it with two baselines: always the most frequent class, and the class of the
# row before.

# %%
auto = svmstream.Auto()
result = svmstream.evaluate(datasets.rows(path), auto)
show(result, "auto on " + name)

# %% [markdown]
# ## The drift alarm
#
# An alert of kind `quality` opens when errors rise beyond chance, and closes when they are as before.

# %%
for row, alert in result.alerts:
    if alert.kind == "quality":
        print("row %6d  %-6s %s" % (row, alert.state, alert.text))

# %% [markdown]
# ## Novelty
#
# A monitor needs no labels: it reports rows that differ from the past, within a budget of alerts.

# %%
monitor = svmstream.Monitor(budget="1/day", interval=1800)  # a row every half hour
novel = svmstream.evaluate(((x, None) for x, _ in datasets.rows(path, ignore=["date"])), monitor,
                           limit=5000)
show(novel, "novelty of " + name)
for row, alert in novel.alerts:
    if alert.state == "open":
        print("row %6d  %s" % (row, alert.text))

# %% [markdown]
# ## Forgetting
#
# A row that was learned with an id can be removed, exactly: the model equals one that has never seen it.

# %%
def learned(rows, forgotten=()):
    model = svmstream.ALSVM(window=2000)  # what is held can be removed
    for i, (x, y) in enumerate(rows):
        model.learn_one(x, y, id=i)
    for i in forgotten:
        model.forget(i)
    return model


rows = [row for row, _ in zip(datasets.rows(path), range(1000))]
with_rows, without = learned(rows, forgotten=range(900, 1000)), learned(rows[:900])
print("largest difference of a weight: %.1e" % abs(with_rows.coef_ - without.coef_).max())
