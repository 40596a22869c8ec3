"""Buses: durable ones for what has to be done, and others for what is good to know."""

from holdfast.bus.command_handlers import claim_handler, command_handler, result_handler
from holdfast.bus.consumer import Consumer, ConsumerOptions
from holdfast.bus.consumer_groups import forget
from holdfast.bus.envelope import Envelope, read_envelope, write_envelope
from holdfast.bus.execution_bus import Channel, ExecutionBus, Health, Subscription
from holdfast.bus.execution_buses.redis import RedisBus
from holdfast.bus.execution_buses.sql import SqlBus
from holdfast.bus.handler import Handler, Park
from holdfast.bus.notification_bus import NotificationBus, Topic
from holdfast.bus.notification_buses.memory import MemoryNotificationBus
from holdfast.bus.notification_buses.postgresql import PostgresqlNotificationBus
from holdfast.bus.notification_buses.redis import RedisNotificationBus
from holdfast.bus.offers import Claimant, OfferOptions, Offers
from holdfast.bus.parked_messages import Kept, Parked
from holdfast.bus.redis_leases import RedisLeases
from holdfast.bus.relay import Relay, RelayOptions
from holdfast.bus.retention import Retention, RetentionOptions

__all__ = [
    "Channel",
    "Claimant",
    "Consumer",
    "ConsumerOptions",
    "Envelope",
    "ExecutionBus",
    "Handler",
    "Health",
    "Kept",
    "MemoryNotificationBus",
    "NotificationBus",
    "OfferOptions",
    "Offers",
    "Park",
    "Parked",
    "PostgresqlNotificationBus",
    "RedisBus",
    "RedisLeases",
    "RedisNotificationBus",
    "Relay",
    "RelayOptions",
    "Retention",
    "RetentionOptions",
    "SqlBus",
    "Subscription",
    "Topic",
    "claim_handler",
    "command_handler",
    "forget",
    "read_envelope",
    "result_handler",
    "write_envelope",
]
