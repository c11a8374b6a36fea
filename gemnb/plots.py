"""Charts, each with its table: `usage(df)`, `context(session)`, `tools(df)`.

They are pictures (matplotlib): in a saved notebook they show in JupyterLab, on GitHub and in a page that nbconvert
makes, without a kernel, a network or trust in the notebook, and they read the same in light and dark.

    gemnb.plots.usage(gemnb.usage_df("all", by=["month", "model"]))

>>> gemnb.plots.usage(gemnb.usage_df(by=["month", "model"])).title
'Spent by month and model'
"""

from __future__ import annotations

from gemnb.frames.draw import Chart
from gemnb.frames.plots import context, tools, usage

__all__ = ["Chart", "context", "tools", "usage"]
