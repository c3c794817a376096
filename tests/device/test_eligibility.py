"""Probes on made-up machines: what /sys and /proc say there, and what the device makes of it."""

from pathlib import Path

import pytest

from tacit.device.eligibility import Eligibility, first_obstacle

ROUTES = "Iface Destination Gateway Flags RefCnt Use Metric Mask MTU Window IRTT\n"
BATTERY = {"type": "Battery", "status": "Discharging", "capacity": "90"}


def machine(root: Path, files: dict[str, str]) -> Path:
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content + "\n")
    return root


def supply(name: str, **said: str) -> dict[str, str]:
    return {f"sys/class/power_supply/{name}/{key}": value for key, value in said.items()}


def network(interface: str, kind: str = "1", uevent: str = "") -> dict[str, str]:
    route = f"{interface} 00000000 0101A8C0 0003 0 0 100 00000000 0 0 0"
    folder = f"sys/class/net/{interface}"
    return {"proc/net/route": ROUTES + route, f"{folder}/type": kind, f"{folder}/uevent": uevent}


LAPTOP = {**supply("BAT0", type="Battery", status="Charging", capacity="90"), **network("wlan0")}
PHONE = {**LAPTOP, **network("wwan0", uevent="INTERFACE=wwan0\nDEVTYPE=wwan")}


@pytest.mark.parametrize(
    ("files", "rules", "why"),
    [
        (LAPTOP, {}, None),
        (network("eth0"), {}, None),  # no battery: a machine on mains
        ({**LAPTOP, **supply("BAT0", status="Full")}, {}, None),
        ({**LAPTOP, **supply("BAT0", status="Discharging")}, {}, "is not charging (Discharging)"),
        ({**LAPTOP, **supply("BAT0", status="Discharging")}, {"charging": False}, None),
        ({**LAPTOP, **supply("BAT0", capacity="49")}, {}, "holds 49%, less than the 50%"),
        ({**LAPTOP, **supply("BAT0", capacity="49")}, {"least_battery": 20}, None),
        ({**LAPTOP, **supply("mouse", type="Battery", scope="Device", status="Discharging", capacity="3")}, {}, None),
        ({**LAPTOP, **supply("AC", type="Mains", online="0")}, {}, None),
        (PHONE, {}, "goes by wwan0, which may be metered"),
        (PHONE, {"unmetered": False}, None),
        ({**LAPTOP, **network("ppp0", kind="512")}, {}, "goes by ppp0"),
        ({**LAPTOP, **network("bnep0", uevent="DEVTYPE=bluetooth")}, {}, "goes by bnep0"),
        ({**LAPTOP, "proc/net/route": ROUTES}, {}, "there is no network"),
        ({}, {}, "by which network it goes cannot be seen without /proc"),
        ({}, {"unmetered": False}, None),
        (LAPTOP, {"largest_load": 1.0}, "how busy it is cannot be seen without /proc"),
        ({**LAPTOP, "proc/loadavg": "900.0 1.0 1.0 1/100 5"}, {"largest_load": 1.0}, "is busy"),
        ({**LAPTOP, "proc/loadavg": "900.0 1.0 1.0 1/100 5"}, {}, None),
        ({**LAPTOP, "proc/loadavg": "0.01 9.0 9.0 1/100 5"}, {"largest_load": 1.0}, None),
    ],
)
def test_whether_it_may_work(files: dict[str, str], rules: dict[str, float], why: str | None, tmp_path: Path) -> None:
    probes = Eligibility(**rules).probes(root=machine(tmp_path, files))  # type: ignore[arg-type]
    found = first_obstacle(probes)
    assert found is None if why is None else found is not None and why in found and found.endswith("."), found


def test_the_route_with_the_least_metric_counts_and_ipv6_where_there_is_no_other(tmp_path: Path) -> None:
    both = ROUTES + "wwan0 00000000 0 3 0 0 700 00000000 0 0 0\nwlan0 00000000 0 3 0 0 100 00000000 0 0 0"
    root = machine(tmp_path / "four", {**PHONE, "proc/net/route": both})
    assert first_obstacle(Eligibility().probes(root=root)) is None
    six = "0" * 32 + " 00 " + "0" * 32 + " 00 fe80" + "0" * 28 + " 00000400 00000001 00000000 00450003 wwan0"
    root = machine(tmp_path / "six", {**PHONE, "proc/net/route": ROUTES, "proc/net/ipv6_route": six})
    assert "wwan0" in str(first_obstacle(Eligibility().probes(root=root)))


def test_of_a_server_on_this_machine_no_network_is_asked(tmp_path: Path) -> None:
    assert first_obstacle(Eligibility().probes(root=tmp_path, network=False)) is None


def test_this_machine_can_be_asked() -> None:
    found = first_obstacle(Eligibility(largest_load=1000.0).probes())
    assert found is None or found.endswith(".")
