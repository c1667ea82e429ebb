"""The database of the board's tests: SQLite in the test's folder, or the PostgreSQL of SQA_BOARD_DB, emptied first."""

import os

from sqlalchemy import create_engine

from sqa_services.board.storage import META

URL = os.environ.get("SQA_BOARD_DB")  # postgresql+psycopg://user@host/name; all its tables of the board are dropped


def fresh() -> str | None:
    """The URL of an empty database; None = let the board make one."""
    if URL is not None:
        engine = create_engine(URL)
        META.drop_all(engine)
        engine.dispose()
    return URL
