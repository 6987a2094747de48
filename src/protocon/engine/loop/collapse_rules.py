"""How pre-training fails without an error: all images end up in one place, or keys are told by their batch."""

import math

from protocon.engine.loop.rule import Row, Rule, above, below

_NEAR_CHANCE = 0.001
_PATIENCE = 2


def collapse_rules(chance_loss: float | None) -> tuple[Rule, ...]:
    """Rules for numbers that only methods without labels have.

    Args:
        chance_loss: the loss of a method that tells no image from another; None where it has no such number.
    """
    rules = [
        Rule(
            "features_alike",
            below("projection_spread", 0.01, "projections of all images are nearly the same (spread {:.1e})"),
            "training has collapsed, or has not begun: lower optim.lr, take larger batches, and check that the images "
            "differ from each other",
            first_epoch=0,
            patience=_PATIENCE,
        ),
        Rule(
            "one_prototype",
            below("prototypes_used", 0.1, "targets use {:.1%} of what the prototypes could tell"),
            "all images get the same target: move the centre faster (a lower method.centre_momentum), raise "
            "method.teacher_temperature, or take fewer prototypes",
            first_epoch=1,
            patience=1,
        ),
        Rule(
            "leaking_keys",
            above("key_leak", 0.04, "other images of a batch move a key by {:.0%} of the distance between images"),
            "batch statistics give keys away, and the encoder learns those instead of images: set "
            "method.key_norms=averaged, or take larger batches",
            first_epoch=0,
            patience=_PATIENCE,
        ),
    ]
    if chance_loss is not None:
        rules.append(_at_chance(chance_loss))
    return tuple(rules)


def _at_chance(chance_loss: float) -> Rule:
    def holds(row: Row) -> str | None:
        loss = row.get("loss", 0.0)
        if abs(loss - chance_loss) > _NEAR_CHANCE * chance_loss:
            return None
        return f"the loss is {loss:.3f}, that of telling no image from another (ln {math.exp(chance_loss):.0f})"

    return Rule(
        "loss_at_chance",
        holds,
        "training has collapsed or has not begun: leave the prototypes fixed for longer at first, take fewer of them, "
        "a shorter queue, or a lower optim.lr",
        first_epoch=0,
        patience=_PATIENCE,
    )
