"""Tables of a database file, by a query: SQLite, and DuckDB where its library is installed."""

import sqlite3
from contextlib import closing
from pathlib import Path
from urllib.parse import quote

import pandas as pd

from bayes_sdc.errors import InputError
from bayes_sdc.io.unicode import refuse_no_unicode

SQLITE, DUCKDB = b"SQLite format 3\0", b"DUCK"
# a query reads this file and no other one: the record of a run names its input
ALONE = {"enable_external_access": "false", "autoinstall_known_extensions": "false"}


def is_database(data: bytes) -> bool:
    """Whether a file is a database, by its content."""
    return data.startswith(SQLITE) or data[8:12] == DUCKDB


def read_query(path: Path, data: bytes, query: str | None) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """Return what a query gives; the database is opened for reading only.

    Parameters
    ----------
    path : Path
        The database.
    data : bytes
        Its content, which tells what it is.
    query : str or None
        In SQL. Without one the tables are named.

    Returns
    -------
    DataFrame, tuple of str
        Table and notes.

    Raises
    ------
    InputError
        If the file is no database, there is no query, or it fails.
    """
    if not is_database(data):
        raise InputError(
            f"{path.name}: is not a database of SQLite or DuckDB, and a query needs one"
        )
    if query is not None:
        refuse_no_unicode(f"{path.name}: the query", query)
    if data.startswith(SQLITE):
        return _sqlite(path, query)
    return _duckdb(path, query)


def _no_query(path: Path, tables: list[str]) -> InputError:
    named = ", ".join(map(repr, tables)) or "none"
    return InputError(
        f"{path.name}: a database, whose tables are {named}; say what to read with --query (query= "
        "of a FileForm), with a SELECT"
    )


def _sqlite(path: Path, query: str | None) -> tuple[pd.DataFrame, tuple[str, ...]]:
    address = f"file:{quote(str(path.resolve()))}?mode=ro"
    try:
        with closing(sqlite3.connect(address, uri=True)) as database:
            if query is None:
                found = database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
                raise _no_query(path, [name for (name,) in found])
            database.set_authorizer(_only_select)
            cursor = database.execute(query)
            names = [column[0] for column in cursor.description or ()]
            rows = cursor.fetchall()
    except (sqlite3.Error, sqlite3.Warning, UnicodeDecodeError) as error:
        # names in a damaged file need not be Unicode
        raise InputError(f"{path.name}: the query fails: {error}") from error
    return _frame(path, names, rows), (f"SQLite, by the query {query!r}",)


def _only_select(action: int, *_: object) -> int:
    """Allow what reads the file, and no other one: the record of a run names its input."""
    allowed = action in (
        sqlite3.SQLITE_SELECT,
        sqlite3.SQLITE_READ,
        sqlite3.SQLITE_FUNCTION,
        sqlite3.SQLITE_RECURSIVE,
    )
    return sqlite3.SQLITE_OK if allowed else sqlite3.SQLITE_DENY


def _duckdb(path: Path, query: str | None) -> tuple[pd.DataFrame, tuple[str, ...]]:
    try:
        import duckdb
    except ImportError:
        raise InputError(
            f"{path.name}: a database of DuckDB; pip install duckdb, or write the table to a file: "
            f"duckdb {path.name!r} -c \"COPY t TO 't.parquet'\""
        ) from None
    try:
        with closing(duckdb.connect(str(path), read_only=True, config=ALONE)) as database:
            if query is None:
                found = database.execute("SHOW TABLES").fetchall()
                raise _no_query(path, [name for (name,) in found])
            statements = database.extract_statements(query)
            if len(statements) > 1:  # DuckDB would give the result of the last one only
                raise InputError(
                    f"{path.name}: the query fails: it has {len(statements)} statements; write one "
                    "SELECT"
                )
            if not statements:
                raise InputError(f"{path.name}: the query gives no table; write a SELECT")
            if statements[0].type != duckdb.StatementType.SELECT:
                raise InputError(f"{path.name}: the query fails: it is no SELECT; write one")
            cursor = database.execute(statements[0])
            names = [column[0] for column in cursor.description or ()]
            rows = cursor.fetchall()
    except duckdb.Error as error:
        raise InputError(f"{path.name}: the query fails: {error}") from error
    return _frame(path, names, rows), (f"DuckDB, by the query {query!r}",)


def _frame(path: Path, names: list[str], rows: list[tuple[object, ...]]) -> pd.DataFrame:
    if not names:
        raise InputError(f"{path.name}: the query gives no table; write a SELECT")
    frame = pd.DataFrame(rows, columns=range(len(names)), dtype=object)
    frame.columns = pd.Index(names)
    return frame
