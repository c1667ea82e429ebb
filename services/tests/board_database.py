"""Database for the board's tests: SQLite in the test's folder, or the PostgreSQL database of SQA_BOARD_DB.

Tables of the board in the PostgreSQL database are dropped first.
"""

import os

from sqlalchemy import create_engine

from sqa_services.board.storage import META

URL = os.environ.get("SQA_BOARD_DB")  # postgresql+psycopg://user@host/name; the tests drop all board tables in it


def fresh() -> str | None:
    """Return the URL of an empty database; None lets the board create one."""
    if URL is not None:
        engine = create_engine(URL)
        META.drop_all(engine)
        engine.dispose()
    return URL
