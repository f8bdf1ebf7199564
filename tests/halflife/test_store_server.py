"""A store on a server: URLs, passwords, servers that refuse, stop or vanish."""

from __future__ import annotations

import traceback
from typing import Any

import polars as pl
import pytest
from sqlalchemy.engine import make_url

from errcomp.errors import InputError, MissingExtraError
from errcomp.halflife import store as _store_writing
from errcomp.halflife import store as module
from errcomp.halflife.store import Added, HistoryStore

SECRET = "s3cret"


def rows(n: int = 3, **changed: Any) -> pl.DataFrame:
    columns = {"version": [f"1.{i}" for i in range(n)], "op": "Gelu", "measured": 1.5}
    return pl.DataFrame(columns | changed)


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        (f"postgresql://me:{SECRET}@host:5432/db", "postgresql://me@host:5432/db"),
        (f"postgresql+psycopg://me:{SECRET}@host/db", "postgresql://me@host/db"),
        (f"postgres://me@host/db?password={SECRET}", "postgresql://me@host/db"),
    ],
)
def test_passwords_are_not_shown(url: str, shown: str) -> None:
    store = HistoryStore(url)
    assert store.shown == shown
    assert repr(store) == f"HistoryStore({shown!r})"


@pytest.mark.parametrize(
    "url",
    [
        f"postgresql://me:{SECRET}@host:x{SECRET}/db",
        f"://{SECRET}",
        f"postgresql:/me:{SECRET}@host/db",
        f"postgresql:me:{SECRET}@host/db",
        f"Postgres+psycopg:/me:{SECRET}@host/db",
        f"sqlite:/{SECRET}.db",
    ],
)
def test_a_url_that_cannot_be_read_is_not_shown(url: str) -> None:
    with pytest.raises(InputError, match=r"URL of the store is not valid\. Write postg") as raised:
        HistoryStore(url)
    shown = "".join(traceback.format_exception(raised.value))
    assert SECRET not in shown


def test_the_driver_is_an_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("errcomp.halflife.store.place.find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match=r"pip install 'errcomp\[postgres\]'"):
        HistoryStore("postgresql://host/db").list()


@pytest.mark.extras
def test_a_server_that_does_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("psycopg")
    store = HistoryStore(f"postgresql://me:{SECRET}@127.0.0.1:9/db")
    for use in (store.list, store.load, lambda: store.add(rows())):
        with pytest.raises(
            InputError, match=r"^postgresql://me@127.0.0.1:9/db: the server cannot be reached"
        ) as raised:
            use()
        assert SECRET not in "".join(traceback.format_exception(raised.value))
    with pytest.raises(InputError) as raised, store._place.reading():
        pass
    assert str(raised.value).endswith(". Check the server and try again.")
    with pytest.raises(InputError) as raised, store._place.writing():
        pass
    assert str(raised.value).endswith(" Nothing was added; check the server and try again.")


@pytest.mark.extras
def test_a_user_a_password_and_a_database_that_are_not_there(server: str) -> None:
    url = make_url(server)
    for changed, message in (
        (url.set(password=SECRET), "refused the connection.*password authentication failed"),
        (url.set(username="nobody"), "refused the connection.*password authentication failed"),
        (url.set(database="none"), "refused the connection.*does not exist"),
    ):
        text = changed.render_as_string(hide_password=False)
        with pytest.raises(InputError, match=message) as raised:
            HistoryStore(text).list()
        shown = "".join(traceback.format_exception(raised.value))
        assert SECRET not in shown
        assert str(url.password) not in shown


@pytest.mark.extras
def test_tables_of_others_are_left_alone(server: str) -> None:
    with HistoryStore(server) as store:
        with store._place.writing() as connection:
            connection.exec_driver_sql("CREATE TABLE mine (x integer)")
        assert store.add(rows()) == Added(3, 0)
        assert store.load().n == 3


@pytest.mark.extras
def test_tables_like_ours_without_a_version(server: str) -> None:
    store = HistoryStore(server)
    with store._place.writing() as connection:
        connection.exec_driver_sql("CREATE TABLE errcomp_series (x integer)")
    with pytest.raises(
        InputError, match=r"contains a table that errcomp did not create \(errcomp_series\)"
    ):
        store.add(rows())


@pytest.mark.extras
def test_a_user_who_may_not_write(server: str) -> None:
    psycopg = pytest.importorskip("psycopg")
    url = make_url(server)
    user = "reader" + url.query["options"][-8:]
    with psycopg.connect(server.partition("?")[0], autocommit=True) as connection:
        connection.execute(f"CREATE ROLE {user} LOGIN PASSWORD 'x'")
        schema = url.query["options"].partition("=")[2]
        try:
            connection.execute(f"GRANT USAGE ON SCHEMA {schema} TO {user}")
            own_url = url.set(username=user, password="x").render_as_string(hide_password=False)
            with pytest.raises(InputError, match="lacks a privilege .permission denied.*Grant"):
                HistoryStore(own_url).add(rows())
            HistoryStore(server).add(rows())
            connection.execute(f"GRANT SELECT ON ALL TABLES IN SCHEMA {schema} TO {user}")
            assert HistoryStore(own_url).load().n == 3
            with pytest.raises(InputError, match="lacks a privilege"):
                HistoryStore(own_url).add(rows(op="Relu"))
        finally:
            connection.execute(f"DROP OWNED BY {user}")
            connection.execute(f"DROP ROLE {user}")


@pytest.mark.extras
def test_a_database_of_another_encoding(server: str) -> None:
    psycopg = pytest.importorskip("psycopg")
    url = make_url(server.partition("?")[0])
    name = "latin" + make_url(server).query["options"][-8:]
    with psycopg.connect(server.partition("?")[0], autocommit=True) as connection:
        connection.execute(
            f"CREATE DATABASE {name} ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0"
        )
        try:
            other = url.set(database=name).render_as_string(hide_password=False)
            with pytest.raises(InputError, match="encoding LATIN1.*ENCODING 'UTF8'"):
                HistoryStore(other).add(rows())
        finally:
            connection.execute(f"DROP DATABASE {name}")


@pytest.mark.extras
def test_a_server_that_goes_while_it_is_written(
    server: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    psycopg = pytest.importorskip("psycopg")
    store = HistoryStore(server)
    store.add(rows())
    real = module.write

    def cut(connection: Any) -> None:
        number = connection.connection.dbapi_connection.info.backend_pid
        with psycopg.connect(server, autocommit=True) as other:
            other.execute("SELECT pg_terminate_backend(%s, 5000)", [number])

    def before(connection: Any, *args: Any, **options: Any) -> int:
        cut(connection)
        return real(connection, *args, **options)

    def after(connection: Any, *args: Any, **options: Any) -> int:
        n = real(connection, *args, **options)
        cut(connection)
        return n

    def amid(connection: Any, *args: Any, **options: Any) -> int:
        hexed = _store_writing._hex
        with monkeypatch.context() as patch:
            patch.setattr(
                _store_writing, "_hex", lambda column: (cut(connection), hexed(column))[1]
            )
            return real(connection, *args, **options)

    for when, message in (
        (before, "Nothing was added; check the server"),
        (amid, "Nothing was added; check the server"),
        (after, "It is unknown whether the rows were stored: add them again with skip_kn"),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(module, "write", when)
            with pytest.raises(InputError, match=rf"(ended the connection|closed it) .*{message}"):
                store.add(rows(op="Relu"))
        assert store.load().n == 3
    assert store.add(rows(op="Relu"), skip_known=True) == Added(3, 0)


@pytest.mark.extras
def test_an_error_of_the_database_is_told(server: str) -> None:
    store = HistoryStore(server)
    with (
        pytest.raises(
            InputError, match=r'the database refused the request \(relation "none" does not'
        ),
        store._place.writing() as connection,
    ):
        connection.exec_driver_sql("DELETE FROM none")
