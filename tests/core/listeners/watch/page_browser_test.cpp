#include <sys/wait.h>

#include "muster/core/listeners/watch/page/curves_file.h"
#include "muster/core/listeners/watch/page/page_directory.h"
#include "muster/core/listeners/watch/page/page_listener.h"
#include "muster/core/listeners/watch/page/still_page.h"
#include "muster/core/nn/multi_layer_network.h"
#include "tests/support/fake_trainer.h"
#include "tests/support/skip.h"
#include "tests/support/test.h"

using namespace muster;
using namespace muster::test;
using namespace std::chrono_literals;

#ifdef MUSTER_PYTHON
namespace {

/// Errors that a browser finds in a page; empty with a message if there is no browser.
std::string wrongWith(const std::string& kind, const std::string& address) {
  const TemporaryDirectory directory;
  const char* const kept = std::getenv("MUSTER_SCREENSHOTS");
  const char* const chosen = std::getenv("MUSTER_SELENIUM_PYTHON");
  const std::string own = directory.path().string();
  // TMPDIR: Chromium leaves directories there.
  const auto command = fmt::format("TMPDIR='{}' '{}' '{}' {} '{}' '{}' >'{}/said' 2>&1", own,
                                   chosen != nullptr ? chosen : MUSTER_PYTHON, MUSTER_PAGE_BROWSER, kind,
                                   address, kept != nullptr ? kept : own, own);
  const int status = std::system(command.c_str());
  const std::string said = readFile(directory / "said");
  if (WIFEXITED(status) && WEXITSTATUS(status) == 77) {
    test::skip(
        "no browser (Debian: chromium, chromium-driver, python3-selenium; MUSTER_SELENIUM_PYTHON names a "
        "Python that has selenium): " +
        said);
    return "";
  }
  return status == 0 ? said : fmt::format("status {}: {}", status, said);
}

/// A run of an arm, for example with HTML in its name.
PageStore runOf(const std::string& arm, int seed, int last = 20) {
  PageStore store({.name = fmt::format("{} {}", arm, seed), .group = arm});
  for (int i = 1; i <= last; ++i) {
    store.point("score/merged", i, (seed == 1 ? 0.2 : 0.4) / i);
    store.point("test/accuracy", i, 1 - 0.1 / i - 0.01 * seed);
    store.point("test/loss", i, 0.3 + 0.1 / i);  // no power of ten lies in its range
    store.point("at/samples", i, 100.0 * i);
  }
  for (int i = 0; i < 10'000; ++i) store.point("mine/long", i, std::sin(0.01 * i));
  PageInbox inbox;
  PageInbox::Content content;
  inbox.text("plan", "two workers</pre><script>hacked = 1</script>");
  inbox.take(content);
  store.add(content);
  return store;
}

const std::vector<std::string> kArms{"<img src=x onerror=hacked=1>", "synchronous"};

}  // namespace

TEST_CASE("a browser draws the page without an error while the training goes on") {
  MultiLayerNetwork network(
      {.inputShape = {2},
       .layers = {Dense{.units = 4, .name = "<img src=x onerror=hacked=1>"}, Output{.classes = 3}}});
  network.init();
  FakeTrainer trainer(network);
  trainer.times = {{.worker = 0, .examples = 1, .computing = 2s},
                   {.worker = 1, .examples = 1, .computing = 1s}};
  const auto page =
      std::make_shared<PageListener>(PageOptions{.sink = [](std::string_view) {}, .readEvery = 0ns});
  const auto workers = page->workers();
  page->text("plan", "two workers</pre><script>hacked = 1</script>");
  for (int i = 0; i < 10'000; ++i) page->point("mine/long", i, i == 7'777 ? 1000 : std::sin(0.01 * i));

  page->onFitStart({trainer, 0, 3, 40});
  const auto round = [&](std::int64_t i) {
    const double score = i == 5 ? kNan : 1.0 / static_cast<double>(i);
    for (int worker = 0; worker < 2; ++worker)
      workers->onIteration({.trainer = trainer,
                            .worker = worker,
                            .stamp = {.iteration = i - 1},
                            .examples = 4,
                            .score = score + 0.01 * worker});
    trainer.times[0].computing += 1ms;
    page->onMerge({.trainer = trainer, .iteration = i, .examples = 8, .score = score, .divergence = 0.1});
  };
  for (std::int64_t i = 1; i <= 20; ++i) round(i);
  page->onMerge({.trainer = trainer, .kind = MergeKind::Resynchronisation, .iteration = 20});
  page->onEpochEnd({trainer, 0, 20, 0.5, 160});
  std::jthread training([&](const std::stop_token& stop) {
    for (std::int64_t i = 21; !stop.stop_requested(); ++i) {
      round(i);
      std::this_thread::sleep_for(50ms);
    }
  });

  CHECK(wrongWith("live", page->address()) == "");
}

TEST_CASE("a browser draws the runs of a directory, one of which grows, as means of arms and one by one") {
  const TemporaryDirectory directory;
  for (const auto& arm : kArms)
    for (const int seed : {1, 2})
      writeCurves(directory / fmt::format("{}-{}.curves.jsonl", arm == kArms[0] ? "a" : "b", seed), arm,
                  runOf(arm, seed));
  std::jthread training([&](const std::stop_token& stop) {
    auto store = runOf(kArms[1], 2);
    CurvesFile file(directory / "b-2.curves.jsonl", kArms[1]);
    for (int i = 21; !stop.stop_requested(); ++i) {
      store.point("score/merged", i, 0.4 / i);
      file.update(store, false);
      std::this_thread::sleep_for(50ms);
    }
  });
  const PageServer server(0, std::make_shared<PageDirectory>(directory.path()));
  CHECK(wrongWith("runs", server.address()) == "");
}

TEST_CASE("a browser draws a page from a file, and makes no request") {
  const TemporaryDirectory directory;
  std::vector<std::string> news;
  for (const auto& arm : kArms)
    for (const int seed : {1, 2}) news.push_back(runOf(arm, seed).all());
  std::string wide;
  for (int i = 0; i < 60; ++i) wide += fmt::format("{}\"column {}\"", i == 0 ? "" : ",", i);
  news.push_back(fmt::format(
      R"({{"document":{{"title":"<b>two</b> arms","target":0.9,"tables":[
        {{"title":"","rows":[{{"cells":["arm","x"]}},{{"cells":["a","<img src=x>"]}},{{"cells":["b","2"]}}]}},
        {{"title":"wide","rows":[{{"cells":[{}]}}]}}],
        "panels":[{{"name":"both","groups":["<img src=x onerror=hacked=1>","synchronous"]}}]}}}})",
      wide));
  writeFile(directory / "page.html", stillPage(news));
  CHECK(wrongWith("still", "file://" + (directory / "page.html").string()) == "");
}
#else
TEST_CASE("a browser draws the page") {
  test::skip("there is no Python 3 here");
}
#endif
