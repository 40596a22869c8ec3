"""A web application that enqueues in the transaction of its own writes.

An order and the task that ships it are written together: both are there, or neither is. There is no
moment in which the order is paid and the task lost, and no task for an order that was rolled back.

Run it:     pip install fastapi uvicorn
            HOLDFAST_DB=postgresql://… uvicorn orders:app
A worker:   HOLDFAST_DB=postgresql://… holdfast worker orders:hf
Order:      curl localhost:8000/orders --json '{"product": "tea", "amount": 2}'

Without HOLDFAST_DB both are on one SQLite file, orders.db.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import psycopg
from fastapi import FastAPI, HTTPException
from pydantic import BaseModel

from holdfast import Holdfast

STORE = os.environ.get("HOLDFAST_DB", "sqlite:///orders.db")
ON_POSTGRESQL = STORE.startswith("postgres")
STOCK = 10

hf = Holdfast(STORE)


class NewOrder(BaseModel):
    product: str
    amount: int


@hf.task(max_attempts=5)
def ship(order: str, product: str, amount: int) -> str:
    return f"{amount} {product} shipped for {order}"


@asynccontextmanager
async def prepared(_: FastAPI) -> AsyncIterator[None]:
    with transaction() as connection:
        connection.execute(
            "CREATE TABLE IF NOT EXISTS orders (id text, product text, amount integer, task text)"
        )
    yield
    hf.close()


app = FastAPI(title="Orders", lifespan=prepared)


@app.post("/orders", status_code=201)
def order(new: NewOrder) -> dict[str, str]:
    made = f"order-{uuid.uuid4().hex[:8]}"
    with transaction() as connection:
        job = ship.enqueue(made, new.product, new.amount, connection=connection)
        insert = "INSERT INTO orders (id, product, amount, task) VALUES (?, ?, ?, ?)"
        connection.execute(placed(insert), (made, new.product, new.amount, job.id))
        ordered = connection.execute("SELECT sum(amount) FROM orders").fetchone()[0]
        if ordered > STOCK:
            # Leaves by an error, so that neither the order nor its task was ever there.
            raise HTTPException(409, f"only {STOCK - ordered + new.amount} left")
    return {"order": made, "task": job.id}


@app.get("/orders/{task}")
def look(task: str) -> dict[str, Any]:
    found = hf.tasks.get(task)
    return {"status": found.status, "output": found.output}


@contextmanager
def transaction() -> Iterator[Any]:
    """The application's own connection on PostgreSQL; on SQLite one that the store lends."""
    if ON_POSTGRESQL:
        with psycopg.connect(STORE) as connection:
            yield connection
    else:
        with hf.transaction() as connection:
            yield connection


def placed(query: str) -> str:
    """A query with the placeholders of the driver that will run it."""
    return query.replace("?", "%s") if ON_POSTGRESQL else query
