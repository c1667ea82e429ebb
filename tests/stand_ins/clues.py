"""Tossups on three pages, which a classifier learns in seconds."""

from sqa.data.texts import Tossup

CLUES = {
    "Lima": [
        "Pizarro founded this city near the Pacific Ocean, where llamas and gold came by ship.",
        "It is the capital of Peru and has a metro line and many museums of Inca art.",
    ],
    "Oslo": [
        "Vikings sailed from its long cold fjord towards the coasts of Denmark and England.",
        "It is the capital of Norway and loves skiing, and its opera stands at the water.",
    ],
    "Cairo": [
        "Napoleon marched here across the hot sand dunes with scholars, guns and many horses.",
        "It is the capital of Egypt and lies along the Nile not far from great pyramids.",
    ],
}


def tossups(n: int) -> list[Tossup]:
    """Return `n` tossups per page, with the clues in either order."""
    return [
        Tossup(f"{page}-{i}", " ".join(clues if i % 2 else clues[::-1]), page, "Geography", page, "made up", None)
        for page, clues in CLUES.items()
        for i in range(n)
    ]
