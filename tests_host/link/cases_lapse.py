"""Cases for test_inside.py: the whole application, hours of it in time-lapse (see lapse.py)."""

import asyncio
import gc

from firmware.link import GREETING
from millpond.dispatch import SUCCESS
from tests_host.link.lapse import RING, Wdt, all_arrive, run, until

RARELY = {"period_s": 86400}
HOUR_S = 3600
SLACK = 2000  # bytes: of what a moment holds and another does not; a leak would be more


def used():
    """The bytes of the heap in use."""
    gc.collect()
    return gc.mem_alloc()


def case_openamber_145_a_broker_that_is_off_for_10_minutes_resets_nobody():
    """Whatever way it is gone: nobody listens, nobody answers, or nobody answers any more.

    Report: openamber#145, mp#5199.
    """

    async def case(app, broker):
        await until(lambda: len(broker.numbers()) > 5, "readings")
        for how in ("off", "silent", "frozen"):
            await broker.become(how)
            before = app.counters()["held"]
            await asyncio.sleep(600)
            assert app.counters()["held"] >= before + 590
            await broker.become("on")
            await until(lambda: app.counters()["held"] < 20, "the backlog gone")
        assert Wdt.bites == 0 and app.supervisor.tasks[0].restarts == 0
        await all_arrive(app, broker)

    run(case, health=RARELY)


class Wlan:
    """A station whose access point is on or off; every second attempt raises, as drivers do."""

    def __init__(self):
        self.on = True
        self.attempts = 0

    def isconnected(self):
        return self.on

    def active(self, on):
        pass

    def disconnect(self):
        pass

    def connect(self, ssid, password):
        self.attempts += 1
        if self.attempts & 1:
            kind = RuntimeError if self.attempts & 2 else OSError
            raise kind("Wifi Internal Error")

    def status(self):
        return 202  # a wrong password, which it is not

    def ifconfig(self):
        return ("192.0.2.7", "255.255.255.0", "192.0.2.1", "192.0.2.1")


def case_mq_132_an_access_point_that_is_off_for_10_minutes_resets_nobody():
    """Report: mq#132, mq#154, mp#17661, openamber#145, mp#5199."""

    async def case(app, broker):
        for _ in range(2):
            await until(app.uplink.is_up, "the link up")
            wlan.on = False
            await broker.become("off")
            await asyncio.sleep(600)
            assert app.counters()["held"] >= 590 and app.uplink.reason == "no network"
            assert not [task.name for task in app.supervisor.tasks if task.restarts]
            await broker.become("on")
            wlan.on = True
            await until(lambda: app.counters()["held"] < 20, "the backlog gone")
        assert wlan.attempts > 50 and Wdt.bites == 0
        await all_arrive(app, broker)

    wlan = Wlan()
    run(case, wlan=wlan, wifi={"ssid": "barn"}, health=RARELY)


def case_esp_mqtt_143_connecting_for_longer_than_the_hardware_watchdog_waits():
    """The broker takes 7 s to answer, the watchdog 5 s to bite, and each connection is lost again.

    Report: esp-mqtt#143, mp#5199.
    """

    async def case(app, broker):
        for _ in range(20):
            await until(app.uplink.is_up, "the link up")
            await broker.become("off")
            await asyncio.sleep(20)
            await broker.become("on")
        await broker.become("silent")
        await asyncio.sleep(120)
        await broker.become("on")
        assert app.uplink.attempts > 25 and Wdt.bites == 0
        await all_arrive(app, broker)

    run(case, 7000, watchdog={"hardware_timeout_s": 5}, health=RARELY)


def case_the_hardware_watchdog_of_these_cases_does_bite():
    async def case(app, broker):
        app.supervisor.unwell = lambda now: ["all of it"]
        await asyncio.sleep(29)
        assert Wdt.bites == 0
        await asyncio.sleep(5)
        assert Wdt.bites

    run(case)


def case_mp_9516_every_part_of_the_application_across_the_wrap_of_the_ticks():
    """From 5 s before it, with every period and time-out short; then with outages around it.

    Report: mp#9516, mp#9608, coreMQTT#288.
    """
    sections = {
        "mqtt": {"keepalive_s": 2, "ack_timeout_s": 2, "connect_timeout_s": 2, "backoff_max_s": 2},
        "send": {"rate_limit": 20},
        "batch": {"max_age_ms": 500},
        "ring": {"max_age_s": 60},
        "watchdog": {"delivery_timeout_s": 3, "check_period_s": 1, "hardware_timeout_s": 5},
        "health": {"period_s": 2},
    }

    async def works(app, broker):
        await asyncio.sleep(20)
        await well(app, broker)
        assert 8 <= len(broker.published["t/pond/health"]) <= 12
        assert app.counting.read_so_far >= 10 * 20

    async def mends(app, broker):
        await until(app.uplink.is_up, "the link up")
        for how in ("off", "silent", "frozen", "off", "silent", "frozen"):
            await broker.become(how)
            await asyncio.sleep(5)
            await broker.become("on")
            await until(app.uplink.is_up, "the link up", 30)
        await well(app, broker)

    async def well(app, broker):
        await all_arrive(app, broker)
        now = app.clock.now()
        assert now < RING // 2 and app.clock.seconds >= 20
        assert Wdt.bites == 0 and app.supervisor.unwell(now) == []
        assert not [task.name for task in app.supervisor.tasks if task.restarts]

    for case in (works, mends):
        run(case, start_ms=RING - 5000, period_ms=100, **sections)


def case_mp_9516_pings_go_on_across_the_wrap_of_the_ticks():
    """With nothing to say, with much to say and nothing heard, and the other way round.

    Report: mp#9516, mp#9608, coreMQTT#288, lib#210.
    """

    async def quiet(app, broker):
        app.stop_sensors()
        await asyncio.sleep(20)

    async def heard_not(app, broker):
        await asyncio.sleep(20)
        assert len(broker.published["t/pond/data"]) > 50

    async def said_nothing(app, broker):
        app.stop_sensors()
        for _ in range(40):
            await asyncio.sleep_ms(500)
            await broker.say(b"\x30\x04\x00\x01tx")

    for case in (quiet, heard_not, said_nothing):

        async def pinging(app, broker, case=case):
            await case(app, broker)
            assert 15 <= app.link.pings <= 25, app.link.pings
            while not app.uplink.is_up():  # never at all is the end of the case's time
                await asyncio.sleep_ms(100)

        run(
            pinging,
            start_ms=RING - 5000,
            period_ms=100,
            mqtt={"keepalive_s": 2, "qos": 0},
            batch={"max_age_ms": 100},
            health=RARELY,
        )


def case_mp_9516_what_expires_in_the_intake_and_in_the_ring_across_the_wrap_of_the_ticks():
    """Report: mp#9516, mp#9608, coreMQTT#288."""

    async def case(app, broker):
        await asyncio.sleep(3)
        before = app.counters()["dropped"]["expired"]
        app.packer.flush()
        app.packer.poll = lambda now, link_up, limit: 0
        topic = app.topics.index("t/pond/note")
        app.queue.enqueue(topic, b"note", 1, 0, False, 3000, app.clock.now())
        await asyncio.sleep(2)
        assert app.counters()["dropped"]["expired"] == before
        await until(lambda: app.counters()["dropped"]["expired"] == before + 1, "it expired", 10)
        assert app.clock.now() < RING // 2
        ring = app.ring
        assert ring.messages()
        await until(lambda: not ring.messages(), "every page expired", 30)
        assert sum(ring.expired)

    ring = {"max_age_s": 10}
    run(case, how="off", start_ms=RING - 5000, batch={"max_age_ms": 100}, ring=ring, health=RARELY)


def case_mp_9516_a_missing_PINGRESP_is_noticed_across_the_wrap_of_the_ticks():
    """Report: mp#9516, mp#9608, coreMQTT#288, project_aura#125."""

    async def case(app, broker):
        app.stop_sensors()
        await asyncio.sleep_ms(before_ms - 500)
        await broker.become("frozen")
        pings = app.link.pings
        await until(lambda: app.link.pings > pings, "a ping", 10)
        await until(lambda: not app.uplink.is_up(), "the link given up", 10)
        assert app.uplink.reason == "no answer to a ping within 2 s", app.uplink.reason
        assert app.clock.now() < RING // 2

    for before_ms in range(3000, 6000, 500):
        run(case, start_ms=RING - before_ms, mqtt={"keepalive_s": 4}, health=RARELY)


def case_mp_9516_each_step_of_a_connect_has_its_time_across_the_wrap_of_the_ticks():
    """Report: mp#9516, mp#9608, coreMQTT#288, OpenEVSE#1102."""

    async def case(app, broker):
        await until_at_once(lambda: app.link.state == GREETING)
        began = Wdt.lapse.ticks_ms()
        await until_at_once(lambda: app.link.state != GREETING)
        took_ms = Wdt.lapse.ticks_ms() - began
        assert 1900 <= took_ms <= 5000, (before_ms, took_ms)

    async def until_at_once(condition):
        while not condition():
            await asyncio.sleep_ms(10)

    for before_ms in (200, 500, 1000, 1500, 2500):
        mqtt = {"connect_timeout_s": 2}
        run(case, how="silent", start_ms=RING - before_ms, mqtt=mqtt, health=RARELY)


def case_mp_9516_the_delivery_watchdog_fires_across_the_wrap_of_the_ticks():
    """Report: mp#9516, mp#9608, coreMQTT#288, project_aura#125."""

    async def case(app, broker):
        await asyncio.sleep_ms(before_ms - 500)
        await until(app.uplink.is_up, "the link up", 10)
        await broker.become("frozen")
        await until(lambda: app.delivery_watchdog.fired, "the watchdog", 30)
        await broker.become("on")
        await until(app.uplink.is_up, "the link up")
        await all_arrive(app, broker)

    for before_ms in range(3000, 6000, 500):
        run(
            case,
            start_ms=RING - before_ms,
            period_ms=100,
            mqtt={"keepalive_s": 0, "ack_timeout_s": 600, "backoff_max_s": 1},
            batch={"max_age_ms": 100},
            watchdog={"delivery_timeout_s": 2, "check_period_s": 1, "hardware_timeout_s": 30},
            health=RARELY,
        )


def case_mp_9516_a_month_of_wraps_leaves_the_uptime_right():
    """Report: mp#9516, mp#9608, coreMQTT#288."""

    async def case(app, broker):
        day_ms = 86400000
        for day in range(1, 31):
            Wdt.lapse.put_on(day_ms)
            await asyncio.sleep(10)
            assert app.clock.seconds // 86400 == day
            await until(app.uplink.is_up, "the link up")
        await all_arrive(app, broker)

    run(case, health=RARELY)


def case_pubsubclient_690_told_of_its_delivery_a_program_may_sleep_at_once():
    """A receipt comes after the acknowledgement, over however slow a broker and however often lost.

    Report: pubsubclient#452, pubsubclient#690.
    """

    async def case(app, broker):
        told = []
        app.stop_sensors()
        for n in range(6):
            await broker.become(("off", "silent", "frozen")[n % 3])
            app.publish("t/pond/last", b"words %d" % n, on_complete=lambda *what: told.append(what))
            await asyncio.sleep(30)
            assert len(told) == n
            await broker.become("on")
            await until(lambda n=n: len(told) > n, "the receipt")
            # Asleep from here on: what the broker has by now is all it gets.
            assert b"words %d" % n in broker.published["t/pond/last"]
        assert [what[:2] for what in told] == [(b"words %d" % n, SUCCESS) for n in range(6)]

    run(case)


def case_esp_idf_5668_eight_hours_of_one_a_minute_with_the_broker_down():
    """Every way of being down in turn, and the heap as it was.

    Report: esp-idf#5668, esp-idf#14419, mp#5929.
    """

    async def case(app, broker):
        await until(app.uplink.is_up, "the link up")
        await outage(broker, HOUR_S // 4)
        before = used()
        await outage(broker, 8 * HOUR_S)
        assert used() - before <= SLACK, (before, used())
        assert app.uplink.attempts > 200
        await broker.become("on")
        await all_arrive(app, broker)
        assert app.counting.read_so_far >= 8 * 60 and Wdt.bites == 0

    async def outage(broker, seconds):
        for how in ("off", "silent", "frozen", "off"):
            await broker.become(how)
            await asyncio.sleep(seconds // 4)

    run(case, coarse=True, period_ms=60000, health=RARELY)
