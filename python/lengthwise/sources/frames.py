"""pandas and polars frames and DuckDB relations: only the one column leaves the library that holds it.

All of them speak the Arrow C interface, but a lazy query would be run for all of its columns, and a pandas frame would
be converted whole; so the column is projected first, and of one of lists the lengths: only those leave the library.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from lengthwise._core import LengthwiseError
from lengthwise.sources.arrow import ArrowSource
from lengthwise.sources.base import Field, Source, reading
from lengthwise.sources.schema import is_any, schema_fields, top_level
from lengthwise.sources.sequences import SequenceSource

if TYPE_CHECKING:
    from collections.abc import Iterator

ADVICE = "check that the query runs"


class QuerySource(Source):
    """A lazy query: the plan for one column is run when it is read.

    Args:
        where: what it is, for messages.
        empty: an Arrow table with its columns and no rows.
        project: a function from a column's name to an object that speaks the Arrow C interface.
        measure: the same, for the lengths of the lists in the column.
    """

    format = "query"
    reads_values = True

    def __init__(self, where: str, empty: Any, project: Any, measure: Any) -> None:
        self.where = where
        self.project = project
        self.measure = measure
        self.schema = empty.schema
        self.fields = schema_fields(self.schema)

    def read(self, field: Field, skip: int = 0) -> Iterator[Any]:
        """Yield the column, or its lengths where the library counts those."""
        if skip:
            return
        index = top_level(self.schema, field.path)
        counted = field.path == self.schema.names[index] and is_any(self.schema.types[index], "list", "large_list")
        yield from self._run(field, self.measure if counted else self.project)

    def values(self, field: Field) -> Iterator[Any]:
        """Yield the column."""
        return self._run(field, self.project)

    def _run(self, field: Field, project: Any) -> Iterator[Any]:
        import pyarrow as pa

        with reading(self.where, ADVICE):
            top = self.schema.names[top_level(self.schema, field.path)]
            source = ArrowSource(self.where, pa.table(project(top)))
        yield from source.read(field)


def open(source: Any) -> Source | None:  # noqa: A001 - the name of the format's entry point
    """Open a frame or a relation, by the library its type comes from."""
    library, kind = type(source).__module__.split(".")[0], type(source).__name__
    where = f"{library}.{kind}"
    if (library, kind) == ("polars", "LazyFrame"):
        with reading(where, ADVICE):
            empty = source.limit(0).collect().to_arrow()
        return QuerySource(where, empty, partial(_of_polars, source), partial(_of_polars, source, counted=True))
    if kind == "DuckDBPyConnection":
        raise LengthwiseError(f"{where} is a connection; pass what its sql(query) or table(name) returns")
    if kind == "DuckDBPyRelation":
        with reading(where, ADVICE):
            import pyarrow as pa

            empty = pa.table(source.limit(0))
        return QuerySource(where, empty, partial(_of_duckdb, source), partial(_of_duckdb, source, counted=True))
    if library == "pandas" and kind in {"DataFrame", "Series"}:
        columns = {"": source} if kind == "Series" else {str(name): series for name, series in source.items()}
        if kind == "DataFrame" and len(columns) < source.shape[1]:
            raise LengthwiseError(f"{where} has several columns of one name among {list(columns)}; rename them")
        with reading(where, "check its columns"):
            return PandasSource(where, {name: _pandas_column(series) for name, series in columns.items()})
    return None


class PandasSource(SequenceSource):
    """The columns of a pandas frame: Arrow or numpy arrays, as pandas holds them."""

    format = "pandas"

    def __init__(self, where: str, columns: dict[str, Any]) -> None:
        import pyarrow as pa

        self.arrow = {name: column for name, column in columns.items() if isinstance(column, pa.ChunkedArray)}
        super().__init__(where, {name: column for name, column in columns.items() if name not in self.arrow})
        if self.arrow:
            table = pa.table(self.arrow)
            found = {field.path: field for field in [*self.fields, *schema_fields(table.schema)]}
            self.fields = [found[path] for path in [*columns, *(path for path in found if path not in columns)]]
            self.rows = table.num_rows

    def read(self, field: Field, skip: int = 0) -> Iterator[Any]:
        """Yield the column."""
        import pyarrow as pa

        if field.path in self.columns:
            yield from super().read(field, skip)
        else:
            yield from ArrowSource(self.where, pa.table(self.arrow)).read(field, skip)

    def sample(self, field: Field) -> Iterator[tuple[int, Any]]:
        """Yield rows from the start, the middle and the end."""
        import pyarrow as pa

        in_python = field.path in self.columns
        yield from super().sample(field) if in_python else ArrowSource(self.where, pa.table(self.arrow)).sample(field)


def _of_polars(frame: Any, name: str, *, counted: bool = False) -> Any:
    import polars.selectors as cs

    # By that name alone: as text, "^a.*$" and "*" are several columns.
    column = cs.by_name(name)
    return frame.select(column.list.len() if counted else column).collect(engine="streaming").to_arrow()


def _of_duckdb(relation: Any, name: str, *, counted: bool = False) -> Any:
    quoted = '"' + name.replace('"', '""') + '"'
    return relation.project(f"len({quoted}) as {quoted}" if counted else quoted)


def _pandas_column(series: Any) -> Any:
    import pyarrow as pa

    if type(series.dtype).__module__.startswith("pandas") and hasattr(series.array, "__arrow_array__"):
        array = series.array.__arrow_array__()
        return array if isinstance(array, pa.ChunkedArray) else pa.chunked_array([array])
    values = series.to_numpy()
    if values.dtype != object or not (missing := series.isna().to_numpy()).any():
        return values
    # Missing lists are NaN in pandas, of which only pandas knows what it means.
    values = values.copy()
    values[missing] = None
    return values
