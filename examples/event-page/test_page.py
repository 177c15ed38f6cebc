"""The page in a real browser. `cargo xtask packages` runs it; without a browser it says so.

HEARBACK_TEST_PICTURES names a folder for pictures of the page, to look at.
"""

import os
import pathlib
import signal
import subprocess
import sys
import unittest
import urllib.error
import urllib.request

import browser

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent.parent / "packages/python/tests"))
from support import ROOT, World, children, eventually, program  # noqa: E402

from hearback import Client  # noqa: E402


class PageTest(World):
    def setUp(self):
        super().setUp()
        env = {**self.env, "HEARBACK": program(), "PYTHONPATH": str(ROOT / "src")}
        self.client = Client(binary=program(), env={**self.removed, **self.env})
        self.addCleanup(self.client.close)
        self.server = subprocess.Popen(
            [sys.executable, str(HERE / "page.py")], env=env, stdout=subprocess.PIPE, text=True
        )
        self.addCleanup(self.server.stdout.close)
        self.addCleanup(self.server.wait)
        self.addCleanup(self.server.kill)
        self.address = self.server.stdout.readline().strip()

    def status_of(self, address, **headers):
        try:
            with urllib.request.urlopen(urllib.request.Request(address, headers=headers), timeout=30) as reply:
                return reply.status
        except urllib.error.HTTPError as error:
            with error:
                return error.code

    def test_without_the_token_there_is_no_page(self):
        self.assertEqual(self.status_of(self.address), 200)
        self.assertEqual(self.status_of(self.address + "output/nothing-like-it"), 404)
        root = self.address.rsplit("/", 2)[0]
        for path in ("/", "/wrong/", "/wrong/events", "//"):
            self.assertEqual(self.status_of(root + path), 404)
        # A name that someone else's page points to this machine.
        self.assertEqual(self.status_of(self.address, Host="attacker.example:80"), 404)

    def test_jobs_appear_and_change_while_one_looks(self):
        path = browser.find()
        if path is None:
            if os.environ.get("CI"):
                self.fail("there is no Chromium")
            self.skipTest("there is no Chromium")
        first = self.client.launch(["sh", "-c", "echo '<b>first</b>'; exit 3"], label="<i>before</i>", sinks=[])["id"]
        self.client.wait(first)
        page = browser.Browser(path)
        self.addCleanup(page.close)
        page.call("Page.enable")
        page.call("Page.navigate", url=self.address)
        # A page that has only begun to load has no body.
        text = "document.body?.innerText ?? ''"

        def shows(*words):
            eventually(f"the page shows {words}", lambda: all(word in page.value(text) for word in words))

        shows("<i>before</i>", "failed", "exit code 3", "live, 0 running")
        self.assertEqual(page.value("document.querySelectorAll('main i, main b').length"), 0, "text became markup")

        os.mkfifo(self.folder / "gate")
        job = self.client.launch(
            ["sh", "-c", f"echo working; cat {self.folder}/gate"], label="second", session="chat-7", sinks=[]
        )
        shows("second", "running", "session chat-7", "live, 1 running")
        self.assertEqual(page.value("document.title"), "(1) Jobs")
        # The newest is the first.
        self.assertIn("second", page.value("document.querySelector('li .name').textContent"))

        # By keys alone: past the filter to the jobs, down, up, open.
        for key in ("Tab", "Tab", "ArrowDown", "ArrowUp"):
            page.press(key)
        self.assertIn("second", page.value("document.activeElement.querySelector('.name').textContent"))
        page.press("Enter", "\r")
        shows("working")
        self.picture(page, "light")
        page.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark"}])
        self.picture(page, "dark")
        page.call("Emulation.setDeviceMetricsOverride", width=390, height=700, deviceScaleFactor=2, mobile=True)
        self.picture(page, "narrow")
        self.assertTrue(page.value("document.documentElement.scrollWidth <= innerWidth"), "it scrolls sideways")

        # The process behind the page dies, and the job ends; the page hears of it.
        (serve,) = children(self.server.pid)
        os.kill(serve, signal.SIGKILL)
        (self.folder / "gate").write_text("")
        self.client.wait(job["id"])
        shows("done", "exit code 0", "live, 0 running")

        page.value("filter.value = 'failed', filter.dispatchEvent(new Event('change'))")
        shown = "[...document.querySelectorAll('li:not([hidden]) .name')].map(name => name.textContent).join()"
        self.assertIn("before", page.value(shown))
        self.assertNotIn("second", page.value(shown))

    def picture(self, page, name):
        if folder := os.environ.get("HEARBACK_TEST_PICTURES"):
            page.picture(pathlib.Path(folder) / f"{name}.png")


if __name__ == "__main__":
    unittest.main()
