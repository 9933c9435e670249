"""The document of `leadline agreement`. It contains no text of a trace. Left out: how the numbers are computed."""

from collections.abc import Iterator

from tasks.analysis.agreement.results import AgreementResult, Claims, GradeAgreement, Grades
from tasks.publish.documents import document as doc
from tasks.publish.report.pages import words
from tasks.publish.report.text import number, percent, plural


def document(found: AgreementResult, link: doc.Links = doc.no_links) -> doc.Document:
    """Build the document: agreement on labels and on grades."""
    sections = [doc.Section("notes", "Left out", tuple(map(doc.Note, found.notes)))] if found.notes else []
    if found.claims:
        sections.append(doc.Section("labels", "Labels of claims", tuple(_claims(found.claims, link))))
    if found.grades:
        sections.append(doc.Section("grades", "Grades of answers", tuple(_grades(found.grades, link))))
    filters, suite = found.filters, found.grades.suite if found.grades else None
    named = {"suite": suite, "recipe": filters.recipe, "app": filters.app}
    return doc.Document(
        kind="compare",
        title="Agreement",
        subjects=(("A", found.a), ("B", found.b)),
        summary=" ".join(_summary(found)) or "Nothing that both have rated enters the numbers.",
        details=(*((what, name, "") for what, name in named.items() if name), *doc.days(filters.first, filters.last)),
        sections=tuple(sections),
    )


def _summary(found: AgreementResult) -> Iterator[str]:
    if found.claims:
        of = found.claims.whole.labels
        same = f"Of {plural(of.n, 'claim')} that both labeled, {percent(of.share.value)} have the same label"
        yield f"{same}: kappa {doc.interval(of.kappa)}."
    for grade in found.grades.by_grade if found.grades else ():
        graded, rank = grade.whole.graded, grade.whole.rank
        yield (
            f"{words(grade.grade).capitalize()}: of {plural(graded.n, 'answer')} that both graded, "
            f"{percent(graded.share.value)} have the same grade, rank correlation {doc.interval(rank)}."
        )


def _claims(claims: Claims, link: doc.Links) -> Iterator[doc.Block]:
    yield doc.Note("Only claims that both labeled enter the numbers. B is the truth in balanced accuracy and recall.")
    yield doc.matrix("Claims: label by A (rows) and by B (columns)", claims.outcomes, claims.matrix)
    agreements = [
        (f"{of.name or 'all'}{kind}", found)
        for of in (claims.whole, *claims.by_app)
        for found, kind in ((of.labels, ""), (of.supported, ", supported or not"))
    ]
    yield doc.table(
        "Agreement on claims that both labeled",
        ("", "claims", "equal", "Cohen's kappa", "balanced accuracy"),
        [(name, of.n, *map(doc.interval, (of.share, of.kappa, of.accuracy))) for name, of in agreements],
    )
    yield doc.table(
        "Each label against the rest",
        ("", "A", "B", "both", "Cohen's kappa, against the rest", "B's that A gave too"),
        [
            (words(of.label), of.n_a, of.n_b, of.both, doc.interval(of.kappa), doc.interval(of.recall))
            for of in claims.by_label
        ],
    )
    if claims.disagreements:
        rows = [
            (
                doc.identifier(r["claim_id"]),
                str(r["date"]),
                r["app"],
                doc.identifier(r["trace_id"], link(r["date"], r["trace_id"])),
                *(doc.label(r[f"label_{rater}"], r[f"confidence_{rater}"]) for rater in "ab"),
            )
            for r in claims.disagreements
        ]
        yield doc.table("Largest disagreements on claims", ("claim", "day", "app", "trace", "A", "B"), rows, 6)


def _grades(grades: Grades, link: doc.Links) -> Iterator[doc.Block]:
    yield doc.Note(
        "Only answers that both graded enter the numbers; whether a grade applies (or is N/A) has a kappa of its own. "
        "B is the truth in balanced accuracy."
    )
    agreements = [
        (", ".join(filter(None, (words(grade.grade), of.name))), of)
        for grade in grades.by_grade
        for of in (grade.whole, *grade.by_app)
    ]
    on = "answers" if grades.suite is None else f"cases of {grades.suite}"
    yield doc.table(
        f"Agreement on grades of {on} that both graded",
        ("", "graded by both", "Cohen's kappa", "weighted kappa", "rank correlation"),
        [
            (name, of.graded.n, doc.interval(of.graded.kappa), _weighted(of), doc.interval(of.rank))
            for name, of in agreements
        ],
    )
    yield doc.table(
        "Equal grades, and whether a grade applies",
        ("", "equal", "balanced accuracy", "graded or N/A", "Cohen's kappa of that"),
        [
            (
                name,
                doc.interval(of.graded.share),
                doc.interval(of.graded.accuracy),
                of.n_applies,
                doc.interval(of.applies),
            )
            for name, of in agreements
        ],
    )
    for grade in grades.by_grade:
        title = f"{words(grade.grade).capitalize()}: grade by A (rows) and by B (columns)"
        yield doc.matrix(title, grade.outcomes, grade.matrix)
    if grades.disagreements:
        rows = [
            (
                doc.identifier(r["item"], link(r["date"], r["item"])),
                str(r["date"] or ""),
                r["app"] or "",
                words(r["grade"]),
                *(_grade(r[f"outcome_{rater}"], r[f"value_{rater}"]) for rater in "ab"),
            )
            for r in grades.disagreements
        ]
        first = "trace" if grades.suite is None else "case"
        yield doc.table("Largest disagreements on grades", (first, "day", "app", "grade", "A", "B"), rows, 4)


def _weighted(of: GradeAgreement) -> doc.Cell | str:
    return "" if of.weighted is None else doc.interval(of.weighted)


def _grade(outcome: str, value: float | None) -> str:
    return words(outcome) if value is None else number(value, 0 if value == int(value) else 2)
