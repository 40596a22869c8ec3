"""Buses: execution buses keep messages until they are handled, notification buses keep nothing.

Imports: command_consumer → command_handlers → consumer, relay, replies → execution_buses, inbox,
offers, retention → consumer_groups, event_log, handler, partition_leases → execution_bus → rest.

- `command_consumer`  the loop in which an engine consumes commands and results from a bus
- `command_handlers`  the handlers of commands, of results and of claims
- `consumer`  a consumer of a group, and its options
- `consumer_groups`  the groups and relays that a store knows, and the end of one
- `envelope`  the form of a message, its checks and its JSON Schema
- `event_log`  the messages of a channel as pages in the order of the store
- `execution_bus`  the port of the execution bus: channels, subscriptions, partitions, batches
- `execution_buses`  the execution bus in the store, and the one on Redis Streams
- `handler`  handlers of messages, deliveries to them, and the deliveries of one transaction
- `inbox`  the handling of messages, each once for each handler
- `notification_bus`  the port of the notification bus
- `notification_buses`  notification buses in memory, on PostgreSQL and on Redis
- `offers`  offers of ready tasks, and workers that claim by them
- `parked_messages`  messages that wait in the store, and the replay and drop of parked ones
- `partition_leases`  the shares of consumers in the partitions of a group
- `periodic_loop`  loops that step in a thread, and the lease that makes one of them the leader
- `position`  how far a reader of a growing table has come, with the gaps it has passed
- `redis_client`  the client for Redis, and the translation of its errors
- `redis_leases`  named leases on Redis
- `relay`  the relay, which publishes the events of a store on Redis
- `replies`  replies to senders that have nothing but the bus
- `retention`  the removal of messages, notes and ended runs that were kept long enough
"""

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
