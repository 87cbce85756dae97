"""A server with one of everything that FastMCP servers declare, for the test of its `inspect` output."""
from typing import Annotated

from fastmcp import FastMCP
from mcp.types import ToolAnnotations
from pydantic import BaseModel, Field

server = FastMCP("Front Desk", instructions="Rooms and guests of a hotel.", version="1.2.0")


class Room(BaseModel):
    number: int
    free: bool


@server.tool(tags={"rooms"}, annotations=ToolAnnotations(readOnlyHint=True, title="Find rooms"))
def find_rooms(beds: Annotated[int, Field(description="How many beds are needed")], quiet: bool = False) -> list[Room]:
    """Find free rooms."""
    return []


@server.tool(tags={"rooms", "billing"}, annotations=ToolAnnotations(destructiveHint=True), meta={"owner": "desk"})
def cancel_booking(booking_id: str) -> Room:
    """Cancel a booking and give its deposit back."""
    return Room(number=1, free=True)


@server.tool
def now() -> str:
    """The time at the desk."""
    return ""


@server.resource("desk://rates", mime_type="application/json", tags={"billing"})
def rates() -> str:
    """The rates of this season."""
    return "{}"


@server.resource("desk://rooms/{number}", mime_type="text/plain")
def room(number: int) -> str:
    """What is known of a room."""
    return ""


@server.prompt(tags={"letters"})
def welcome(guest: Annotated[str, Field(description="The name of the guest")], language: str = "en") -> str:
    """A letter of welcome."""
    return guest
