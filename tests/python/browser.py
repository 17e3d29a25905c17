"""Headless Chromium for tests of pages. Where it is missing, the tests that need it are skipped."""
import importlib.util
import shutil
import unittest

CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
HAS_BROWSER = bool(CHROMIUM and DRIVER and importlib.util.find_spec("selenium"))
PATIENCE = 60  # seconds, a limit against hangs

needs_browser = unittest.skipUnless(
    HAS_BROWSER, "needs the Debian packages chromium, chromium-driver and python3-selenium"
)


class Browser(unittest.TestCase):
    """Tests that open pages. No host can be reached. A class below has `folder`, a temporary folder."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        if not HAS_BROWSER:
            return
        from selenium import webdriver
        from selenium.webdriver.chrome.service import Service

        options = webdriver.ChromeOptions()
        for argument in (
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--host-resolver-rules=MAP * ~NOTFOUND",
            f"--user-data-dir={cls.folder / 'profile'}",
        ):
            options.add_argument(argument)
        options.binary_location = CHROMIUM
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        cls.browser = webdriver.Chrome(options=options, service=Service(DRIVER))
        cls.addClassCleanup(cls.browser.quit)
        cls.browser.set_page_load_timeout(PATIENCE)
        cls.browser.set_script_timeout(PATIENCE)

    def open_page(self, path, width=1280):
        """Opens a page and checks that the console has no error."""
        self.browser.execute_cdp_cmd(
            "Emulation.setDeviceMetricsOverride",
            {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": width < 700},
        )
        self.browser.get(path.as_uri())
        self.no_errors()

    def no_errors(self):
        self.assertEqual(
            [entry["message"] for entry in self.browser.get_log("browser") if entry["level"] in ("SEVERE", "WARNING")],
            [],
        )

    def do(self, script, *arguments):
        """Runs JavaScript after the page has drawn what is due, and returns its result."""
        self.browser.execute_async_script(
            "const done = arguments[arguments.length - 1]; requestAnimationFrame(() => requestAnimationFrame(() => done()));"
        )
        return self.browser.execute_script(script, *arguments)

    def column(self, table, which):
        return self.do(
            "return [...document.querySelectorAll(`[data-table=${arguments[0]}] tbody tr`)].map((row) => row.children[arguments[1]].textContent)",
            table,
            which,
        )

    def poor_contrasts(self):
        """Returns [(tag, class, text, contrast)] of the texts of the page whose contrast with what is behind them is below 4.5 (WCAG 2). Texts in
        charts are left out: they are drawn in colours that `ink` chooses."""
        return self.do(
            r"""
            const parts = (text) => (text.match(/[\d.]+/g) || []).map(Number);
            const light = ([r, g, b]) => [r, g, b].map((one) => one / 255).map((one) => one <= 0.03928 ? one / 12.92 : ((one + 0.055) / 1.055) ** 2.4)
              .reduce((sum, one, at) => sum + one * [0.2126, 0.7152, 0.0722][at], 0);
            const poor = [];
            for (const node of document.querySelectorAll("body *")) {
              if (node.closest("svg")) continue;
              if (![...node.childNodes].some((child) => child.nodeType === 3 && child.textContent.trim()) || !node.getClientRects().length || node.disabled) continue;
              let behind = node, fill = [0, 0, 0, 0];
              while (behind && (fill[3] ?? 1) === 0) { fill = parts(getComputedStyle(behind).backgroundColor); behind = behind.parentElement; }
              const [a, b] = [light(parts(getComputedStyle(node).color)), light(fill)].sort((x, y) => y - x);
              if ((a + 0.05) / (b + 0.05) < 4.5) poor.push([node.tagName, node.className, node.textContent.slice(0, 30), (a + 0.05) / (b + 0.05)]);
            }
            return poor"""
        )
