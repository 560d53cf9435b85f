"""The pages of docs/ that follow from the code are as ``python -m deploy.docs`` writes them."""

import pytest

from deploy.docs.__main__ import DOCS, PAGES
from deploy.monitoring.alerts import ALERTS, Alert
from tests import keys


@pytest.mark.parametrize("name", PAGES)
def test_a_committed_page_is_what_python_m_deploy_docs_writes(name: str) -> None:
    assert (DOCS / name).read_text() == PAGES[name]()


def test_the_page_of_keys_has_those_that_the_commands_print_each_with_a_meaning() -> None:
    assert keys.PAGE.read_text() == keys.page()


@pytest.mark.parametrize("alert", ALERTS, ids=lambda alert: alert.name)
def test_the_runbook_of_an_alert_leads_to_its_section(alert: Alert) -> None:
    path, _, anchor = alert.runbook.partition("#")
    titles = [line[3:] for line in (DOCS.parent / path).read_text().splitlines() if line.startswith("## ")]
    assert anchor in [title.lower() for title in titles]
