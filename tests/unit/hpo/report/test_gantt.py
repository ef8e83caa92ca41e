"""The chart of gangs over time."""

from collections import defaultdict

import pytest

from hpo.report.pictures.gantt import brackets, chart
from hpo.report.pictures.look import KINDS
from tests.support.records import made_up
from tests.support.refusals import mentions, missing_names


def test_bars_add_up_to_the_ledger():
    data = made_up(workers=3)
    found = chart(data)
    assert sum(bar.seconds for bar in found.bars) * 3 == pytest.approx(sum(data.billed.values()))
    kinds = defaultdict(float)
    for bar in found.bars:
        kinds[bar.group if bar.group in KINDS else "training"] += 3 * bar.seconds
    assert kinds == pytest.approx(data.billed)
    assert found.shares["training"] == pytest.approx(data.billed["training"] / sum(data.billed.values()))


def test_a_row_is_a_gang_and_brackets_that_cut_alike_are_one():
    found = chart(made_up(trials=100, resource=9))
    assert found.rows == ("gang 1", "gang 2", "gang 3", "gang 4")
    assert found.workers == (3, 3, 3, 3)
    first, second, never, untuned, *kinds = found.colours
    mentions(first, 1, 3)
    mentions(second, 3)
    assert missing_names(second, 1)
    assert missing_names(never, 1, 3) == ["1", "3"]
    mentions(untuned, "probe", "un-tuned")
    assert kinds == ["starting", "checkpointing", "idle"]
    assert len(set(found.colours.values())) == len(found.colours)


def test_a_bar_says_what_it_is():
    data = made_up(trials=4, resource=9)
    says = {bar.says for bar in chart(data).bars}
    assert {"starting", "idle"} <= says
    for names in (("trial 0", "1 round", "training"), ("un-tuned", "9 rounds", "training")):
        assert [text for text in says if not missing_names(text, *names)], names
    assert "0\u21921" in {bar.label for bar in chart(data).bars}


def test_both_forms_have_a_bar_for_all_that_can_be_seen():
    data = made_up()
    figure = brackets(data)
    trained = [bar for bar in chart(data).bars if bar.group not in KINDS]
    drawn = [trace for trace in figure.interactive.data if trace.name not in KINDS]
    assert sum(len(trace.x) for trace in drawn) == len(trained)
    (axes,) = figure.still().axes
    assert len(axes.patches) == sum(len(trace.x) for trace in figure.interactive.data)
    assert [label.get_text() for label in axes.get_yticklabels()] == list(chart(data).rows)
    mentions(figure.title, "4 gangs", "3 workers", "8%")
