"""Orders: in which order training reads its documents and rows."""

from workbench.choices.data.orders.curriculum import Curriculum
from workbench.choices.data.orders.order import Order
from workbench.choices.data.orders.sharded import Sharded
from workbench.choices.data.orders.shuffled import Shuffled

__all__ = ["Curriculum", "Order", "Sharded", "Shuffled"]
