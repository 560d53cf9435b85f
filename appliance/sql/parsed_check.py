"""The check of a statement as Catalyst's parser has read it, before Spark looks anything up."""

import re
from typing import Any

from appliance.sql.catalyst import CATALYST, HASHES, TIMES, Catalyst, class_of
from appliance.sql.model import refusals
from appliance.sql.model.refusals import SPECIAL_TIMES, Places, refusal
from appliance.sql.model.statement import RECORDS, SALT, Statement, StatementRefused

_AS = re.compile(r"\bAS\b", re.IGNORECASE)


class ParsedCheck:
    """The check of one statement; ``places`` are of what its analysis asks for later."""

    def __init__(self, catalyst: Catalyst, statement: Statement) -> None:
        self.places = Places()
        self._catalyst = catalyst
        self._statement = statement

    def over(self, plan: Any, base: Any) -> Any:
        """Check what the parser has read; the same plan over the plan of the records."""
        match class_of(plan):
            case "UnresolvedRelation":
                return self._relation(plan, base)
            case "SubqueryAlias":
                self._alias_of_relation(plan)
            case "Project" | "Filter":
                for expression in self._catalyst.items(plan.expressions()):
                    self._parsed_expression(expression)
            case _:
                raise self._refused(plan, refusals.of_plan(class_of(plan)))
        return plan.withNewChildren(
            self._catalyst.seq(self.over(child, base) for child in self._catalyst.children(plan))
        )

    def _relation(self, plan: Any, base: Any) -> Any:
        name = ".".join(self._catalyst.items(plan.multipartIdentifier()))
        if name.lower() != RECORDS:
            raise self._refused(plan, f"there is no relation {name}: write FROM {RECORDS}")
        identifier = self._catalyst.named(f"{CATALYST}.AliasIdentifier")(RECORDS)
        return self._catalyst.named(f"{CATALYST}.plans.logical.SubqueryAlias")(identifier, base)

    def _alias_of_relation(self, plan: Any) -> None:
        keywords = self._catalyst.named(f"{CATALYST}.util.SQLKeywordUtils").keywords()
        if (name := plan.alias()).upper() in self._catalyst.items(keywords):
            last = len(self._statement.text.rstrip()) - 1
            raise self._statement.refused(
                f"{name} would be another name of {RECORDS}: write what belongs after it, or remove it",
                *(self._catalyst.place(plan) or (last, last)),
            )

    def _parsed_expression(self, expression: Any) -> None:
        for node in self._catalyst.below(expression):
            match class_of(node):
                case "UnresolvedFunction":
                    self._function(node)
                case "Alias":
                    self._alias(node)
                case "UnresolvedStar" | "UnresolvedStarExceptOrReplace":
                    self.places.stars.append(self._catalyst.place(node) or (-1, -1))
                case "UnresolvedAttribute":
                    if (place := self._catalyst.place(node)) and node.nameParts().last().lower() == SALT:
                        self.places.salts.append(place)
                case "Literal":
                    self._literal(node)
                case name if reason := refusals.of_expression(name):
                    raise self._refused(node, reason)

    def _function(self, node: Any) -> None:
        parts = self._catalyst.items(node.nameParts())
        name = parts[-1].lower()
        if len(parts) > 1:
            raise self._refused(node, f"{'.'.join(parts)} is not known here: write {name}")
        entry = self._catalyst.named(f"{CATALYST}.analysis.FunctionRegistry").expressions().get(name)
        if entry.isEmpty():
            raise self._refused(node, f"Spark SQL has no function {name}")
        if reason := refusal(name, entry.get()._1().getGroup()):
            raise self._refused(node, reason)
        if name.capitalize() in HASHES and (place := self._catalyst.place(node)):
            self.places.hashes.append(place)

    def _literal(self, node: Any) -> None:
        """The parser has computed what ``TIMESTAMP 'now'`` is, so that its text alone shows it."""
        place = self._catalyst.place(node)
        quoted = self._statement.text[place[0] : place[1] + 1].partition("'")[2] if place else ""
        if class_of(node.dataType()) in TIMES and SPECIAL_TIMES.match(quoted):
            raise self._refused(node, refusals.ANOTHER_TIME)

    def _alias(self, node: Any) -> None:
        """A comma that is forgotten between two columns makes the second the name of the first."""
        whole, child = self._catalyst.place(node), self._catalyst.place(node.child())
        if whole and child and not _AS.search(self._statement.text[child[1] + 1 : whole[1] + 1]):
            name = node.name()
            raise self._refused(node, f"write AS before {name}, if it is another name, or a comma, if it is a column")

    def _refused(self, node: Any, reason: str) -> StatementRefused:
        return self._statement.refused(reason, *(self._catalyst.place(node) or ()))
