"""Opens pages in headless Chromium, for page_browser_test: page_browser.py live|runs|still ADDRESS DIRECTORY. Prints what is
wrong, one line each, and nothing where all is well; leaves screenshots in DIRECTORY. Ends with 77 and says why where there
is no Chromium or no selenium."""

import shutil
import sys
import time

try:
    from selenium import webdriver
    from selenium.common.exceptions import WebDriverException
    from selenium.webdriver.chrome.options import Options
    from selenium.webdriver.chrome.service import Service
    from selenium.webdriver.common.by import By
    from selenium.webdriver.common.keys import Keys
    from selenium.webdriver.support.select import Select
except ImportError as missing:
    print(f"{sys.executable}: {missing}")
    sys.exit(77)
if not shutil.which("chromium") or not shutil.which("chromedriver"):
    print("there is no chromium or no chromedriver (Debian: chromium, chromium-driver)")
    sys.exit(77)

kind, address, directory = sys.argv[1:]
options = Options()
for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--window-size=1280,1000"):
    options.add_argument(argument)
options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
try:
    driver = webdriver.Chrome(service=Service(shutil.which("chromedriver")), options=options)
except WebDriverException as error:
    print(f"Chromium does not start here: {error.msg.splitlines()[0]}")
    sys.exit(77)


def check(condition, what):
    if not condition:
        print(what)


def script(text):
    return driver.execute_script("return " + text)


def wait(text, what):
    """Until a script is true, for as long as a loaded machine may need."""
    end = time.monotonic() + 60
    while not script(text):
        if time.monotonic() > end:
            print(f"did not come: {what}")
            return
        time.sleep(0.05)


def pixels(title):
    """Drawn pixels of a figure's canvas; not known (the check is then of the curve's number of rows) before it is there."""
    return driver.execute_script(
        "const f = [...document.querySelectorAll('#charts figure')].find(f => f.textContent.startsWith(arguments[0]));"
        "if (!f) return 0; const c = f.querySelector('canvas');"
        "const d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data;"
        "let n = 0; for (let i = 3; i < d.length; i += 4) n += d[i] > 0; return n;", title)


def keys(title):
    return driver.execute_script(
        "const f = [...document.querySelectorAll('#charts figure')].find(f => f.textContent.startsWith(arguments[0]));"
        "return f ? [...f.querySelectorAll('.keys button')].map(b => b.textContent) : [];", title)


def zoom():
    """By keys and by the mouse, and back."""
    plot = driver.find_element(By.CSS_SELECTOR, "#charts .plot")
    whole = script("charts[0].graph.xAxisRange()")
    plot.send_keys("+")
    near = script("charts[0].graph.xAxisRange()")
    check(near[1] - near[0] < whole[1] - whole[0], f"+ did not zoom: {whole}, {near}")
    plot.send_keys(Keys.ARROW_RIGHT)
    check(script("charts[0].graph.xAxisRange()")[0] > near[0], "the arrow did not move")
    plot.send_keys(Keys.ESCAPE)
    check(script("charts[0].graph.isZoomed()") is False, "Escape did not show the whole range")
    plot.send_keys("+")
    driver.find_element(By.TAG_NAME, "body").send_keys("r")
    check(script("charts[0].graph.isZoomed()") is False, "r did not show the whole range")
    webdriver.ActionChains(driver).move_to_element_with_offset(plot, -60, 0).click_and_hold().move_by_offset(120, 0).release().perform()
    check(script("charts[0].graph.isZoomed()") is True, "dragging did not zoom")
    driver.find_element(By.ID, "reset").click()
    check(script("charts[0].graph.isZoomed()") is False, "the button did not show the whole range")


def themes(name):
    for theme in ("dark", "light"):
        if script("document.documentElement.dataset.theme") != theme:
            driver.find_element(By.ID, "theme").click()
        check(script("document.documentElement.dataset.theme") == theme, f"no {theme} theme")
        driver.save_screenshot(f"{directory}/{name}-{theme}.png")
    driver.set_window_size(390, 844)
    time.sleep(0.3)
    check(script("document.documentElement.scrollWidth <= window.innerWidth"), "a phone would scroll sideways: "
          + str(script("[document.documentElement.scrollWidth, window.innerWidth]")))
    driver.execute_cdp_cmd("Emulation.setTouchEmulationEnabled", {"enabled": True})
    driver.save_screenshot(f"{directory}/{name}-phone.png")
    touch()
    driver.execute_cdp_cmd("Emulation.setTouchEmulationEnabled", {"enabled": False})
    driver.set_window_size(1280, 1000)


def touch():
    """One finger on a chart scrolls the page, and what it presses is large enough."""
    driver.execute_script("document.querySelector('#charts .plot').scrollIntoView({block: 'center'})")
    before = script("[scrollY, charts[0].graph.xAxisRange()]")
    x, y = script("(b => [b.left + b.width / 2, b.top + b.height / 2])(document.querySelector('#charts .plot').getBoundingClientRect())")
    for kind, at in (("touchStart", [y]), *(("touchMove", [y - 10 * i]) for i in range(1, 21)), ("touchEnd", [])):
        driver.execute_cdp_cmd("Input.dispatchTouchEvent", {"type": kind, "touchPoints": [{"x": x, "y": to} for to in at]})
    wait(f"scrollY > {before[0]}", "a finger on a chart did not scroll the page")
    check(script("charts[0].graph.isZoomed()") is False, "a finger that scrolls zoomed a chart")
    if script("matchMedia('(pointer: coarse)').matches"):
        small = script("[...document.querySelectorAll('button, select')].filter(b => b.offsetParent && b.offsetHeight < 44)"
                       ".map(b => b.textContent)")
        check(not small, f"too small for a finger: {small}")
    driver.execute_script("scrollTo(0, 0)")


def labels():
    """No label of an axis lies over another, or over a tick of one."""
    over = script("""[...document.querySelectorAll('#charts .plot')].filter(plot => {
      const boxes = [...plot.querySelectorAll('.dygraph-axis-label-x')].map(l => l.getBoundingClientRect()).sort((a, b) => a.left - b.left);
      const under = plot.parentElement.querySelector('.across').getBoundingClientRect();
      return boxes.some((b, i) => i > 0 && b.left < boxes[i - 1].right - 30) || boxes.some(b => b.bottom > under.bottom);
    }).length""")
    check(over == 0, f"labels of {over} figures lie over each other")
    few = script("""charts.filter(chart => chart.figure.isConnected && ['x', 'y'].some(axis =>
      [...chart.plot.querySelectorAll(`.dygraph-axis-label-${axis}`)].filter(l => l.textContent !== '').length < 2))
      .map(chart => chart.kind.title)""")
    check(not few, f"axes with less than two numbers: {few}")


def live():
    driver.get(address)
    wait("document.documentElement.dataset.drawn > 0 && charts.some(c => c.graph)", "the first curve")
    check(script("location.search") == "", "the token is still in the address")
    check(script("document.title") == "muster", "the title is " + str(script("document.title")))
    check(script("document.querySelector('#charts figcaption').textContent").startswith("Score"), "no score at the top")
    check(pixels("Score") > 200, "the score is not drawn")
    for name in ("worker 0", "worker 1", "merged"):
        check(any(key.startswith(name) for key in keys("Score")), f"no {name} beneath the score: {keys('Score')}")
    newest = lambda merged, epoch: script(f"""Object.assign(new Run(''), {{series: new Map([
      ['score/merged', {{steps: [1, {merged}], values: [9, 8]}}], ['score/epoch', {{steps: [{epoch}], values: [7]}}]])}}).score""")
    check((newest(20, 27), newest(27, 27), newest(30, 27)) == (7, 7, 8), "the newest score is another one")
    check(script("new Run('').score") is None, "a run without readings has a score")
    check(script("charts[0].bad").count(5) == 1, "the score that is no number has no mark")
    check(script("charts[0].marks.length") == 1, "the resynchronisation has no mark")
    check("withheld" in script("charts[0].note.textContent"), "the resynchronisation is not explained")
    # A name with HTML stays text.
    check(script("document.querySelectorAll('img').length") == 0, "a name became an element")
    check(script("window.hacked === undefined"), "a name became a script")
    check("<img" in script("document.getElementById('layer').textContent"), "the hostile layer is not named")
    check("<script>" in script("document.getElementById('words').textContent"), "the hostile text is not shown")
    check(script("document.querySelectorAll('#graph .node').length") == 3, "the network has not its three nodes")
    driver.execute_script("document.querySelector('#graph .node:nth-of-type(2)').dispatchEvent(new Event('click'))")
    check(script("document.querySelectorAll('#settings tr').length") > 0, "no settings of a layer")
    check(script("document.querySelectorAll('#histogram-parameters .bar').length") == 50, "no histogram")

    # 10,000 points were thinned, and the page continues.
    long = "store.run('').series.get('mine/long')"
    wait(f"{long} && {long}.steps.length > 500", "a long curve")
    check(script(f"{long}.steps.length") <= 2000, "the long curve is not thinned")
    check(script(f"Math.max(...{long}.values)") == 1000, "the long curve lost its peak")
    zoom()
    # Switch a curve off and on.
    driver.execute_script("document.querySelector('#charts .keys button').click()")
    check(script("charts[0].graph.visibility()")[0] is False, "a curve could not be switched off")
    driver.execute_script("document.querySelector('#charts .keys button').click()")
    themes("live")
    # While paused, the page stores new points and does not draw them.
    driver.find_element(By.ID, "pause").send_keys(Keys.ENTER)
    check(script("document.getElementById('pause').getAttribute('aria-pressed')") == "true", "no pause")
    driver.find_element(By.ID, "pause").send_keys(Keys.ENTER)
    # The page shows why a training ended early.
    check(script("document.getElementById('failure').hidden") is True, "a training that goes on has failed")
    driver.execute_script("store.add({run: '', failed: 'the score became nan'}); show()")
    check(script("document.getElementById('failure').textContent") == "the score became nan", "the failure is not shown")
    check(script("document.getElementById('state').textContent").startswith("ended early"), "the state tells no failure")
    driver.execute_script("store.add({run: '', failed: ''})")
    # The training continues, and so do the curves, also over another axis.
    steps = script("store.run('').series.get('score/merged').steps.length")
    wait(f"store.run('').series.get('score/merged').steps.length > {steps + 5}", "more of a training that is running")
    wait("[...document.getElementById('across').options].some(o => o.value === 'samples')", "another axis")
    # Two runs are compared by samples, until the reader chooses.
    script("(store.add({run: 'another', series: [{name: 'at/samples', points: [[1, 8]]}]}), 1)")
    wait("document.getElementById('across').value === 'samples'", "samples as the axis of two runs")
    script("(store.runs.delete('another'), store.changed.add('runs'), 1)")
    wait("document.getElementById('across').value === 'iterations'", "iterations as the axis of one run")
    Select(driver.find_element(By.ID, "across")).select_by_value("samples")
    wait("charts[0].across === 'samples' && charts[0].graph.xAxisExtremes()[1] > 100", "curves by samples")


def runs(still):
    driver.get(address)
    wait("document.documentElement.dataset.drawn > 0 && charts.some(c => c.graph)", "the first curve")
    wait("store.runs.size === 4", "all runs")
    wait("document.getElementById('across').value === 'samples'", "arms compared by samples")
    wait("document.querySelectorAll('#before tr, #arms tr').length === 3", "a table of two arms")
    check(pixels("Score") > 200 and pixels("Accuracy") > 200, "score and accuracy are not drawn")
    check(len(keys("Score")) == 2, f"not one curve for each arm: {keys('Score')}")
    check(any(key.startswith("<img") for key in keys("Score")), "the hostile arm is not named")
    check(script("document.querySelectorAll('img').length") == 0 and script("window.hacked === undefined"), "a name became an element")
    # Two seeds with 0.2 and 0.4: the mean, and a band of one standard deviation (n - 1).
    band = script("meanOf(store.groups(null)[0], 'score/merged', 'iterations')[0]")
    check(abs(band[2] - 0.3) < 1e-9 and abs(band[3] - band[2] - 0.02 ** 0.5) < 1e-9, f"the band is {band}")
    labels()
    zoom()
    # Hovering raises a curve that others hide.
    webdriver.ActionChains(driver).move_to_element(driver.find_element(By.CSS_SELECTOR, "#charts .keys button")).perform()
    check(script("charts[0].graph.getHighlightSeries()") == "c0", "a name under the pointer does not show its curve")
    themes("still" if still else "runs")
    # Select one run, then all runs again.
    Select(driver.find_element(By.ID, "run")).select_by_index(2)
    wait("chosenRun() !== null && charts[0].names[0] === 'score/merged'", "a run alone")
    check("Plan" in script("document.getElementById('words').textContent"), "no plan of a run")
    Select(driver.find_element(By.ID, "run")).select_by_index(0)
    wait("charts[0].names.length === 2", "all runs again")
    Select(driver.find_element(By.ID, "across")).select_by_value("iterations")
    wait("charts[0].across === 'iterations'", "iterations")
    if not still:  # the last run is still growing
        wait("[...store.runs.values()][3].series.get('score/merged').steps.length > 10", "a run that grows")
        return
    # 10,000 points, and the only request is for the file itself.
    check(script("[...store.runs.values()][0].series.get('mine/long').steps.length") <= 2000, "the long curve is not thinned")
    # A hint shows that columns are cut off.
    check(script("document.querySelector('#after .hint').hidden") is False, "a table that is too wide does not say so")
    check(script("document.querySelector('#before .hint').hidden") is True, "a table that fits says that it does not")
    requests = [line["message"] for line in driver.get_log("performance") if "Network.requestWillBeSent\"" in line["message"]]
    others = [r[:200] for r in requests if "file://" not in r and "data:," not in r]
    check(not others, f"requests: {others[:3]}")


try:
    if kind == "live":
        live()
    else:
        runs(kind == "still")
    for line in driver.get_log("browser"):
        if "willReadFrequently" in line["message"]:  # caused by pixels() in this script
            continue
        print("console: " + line["message"][:300])
finally:
    driver.quit()
