#include <doctest/doctest.h>
#include <sys/wait.h>

#include <cmath>
#include <cstdlib>
#include <limits>
#include <thread>

#include "muster/core/nn/multi_layer_network.h"
#include "muster/core/listeners/watch/page/page_listener.h"
#include "tests/support/fake_trainer.h"
#include "tests/support/skip.h"
#include "tests/support/temporary_directory.h"

using namespace muster;
using namespace muster::test;
using namespace std::chrono_literals;

TEST_CASE("a browser draws it, without a word of complaint, while the training goes on") {
#ifdef MUSTER_PYTHON
  MultiLayerNetwork network(
      {.inputShape = {2},
       .layers = {Dense{.units = 4, .name = "<img src=x onerror=hacked=1>"}, Output{.classes = 3}}});
  network.init();
  FakeTrainer trainer(network);
  trainer.times = {{.worker = 0, .examples = 1, .computing = 2s},
                   {.worker = 1, .examples = 1, .computing = 1s}};
  const auto page = std::make_shared<PageListener>(PageOptions{.sink = [](std::string_view) {}});
  const auto workers = page->workers();
  page->text("plan", "two workers</pre><script>hacked = 1</script>");
  for (int i = 0; i < 10'000; ++i) page->point("mine/long", i, i == 7'777 ? 1000 : std::sin(0.01 * i));

  page->onFitStart({trainer, 0, 3, 40});
  const auto round = [&](std::int64_t i) {
    const double score = i == 5 ? std::numeric_limits<double>::quiet_NaN() : 1.0 / static_cast<double>(i);
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
  page->onEpochEnd({trainer, 0, 20, 0.5, 160});
  std::jthread training([&](const std::stop_token& stop) {
    for (std::int64_t i = 21; !stop.stop_requested(); ++i) {
      round(i);
      std::this_thread::sleep_for(50ms);
    }
  });

  const TemporaryDirectory directory;
  const char* const kept = std::getenv("MUSTER_SCREENSHOTS");
  const char* const chosen = std::getenv("MUSTER_SELENIUM_PYTHON");
  const auto command = fmt::format(
      "'{}' '{}' '{}' '{}' >'{}' 2>&1", chosen != nullptr ? chosen : MUSTER_PYTHON, MUSTER_PAGE_BROWSER,
      page->address(), kept != nullptr ? kept : directory.path().string(), (directory / "said").string());
  const int status = std::system(command.c_str());
  const std::string said = readFile(directory / "said");
  if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
    return test::skip(
        "no browser (Debian: chromium, chromium-driver, python3-selenium; MUSTER_SELENIUM_PYTHON "
        "names a Python that has selenium): " +
        said);
  CHECK(status == 0);
  CHECK(said == "");
#else
  test::skip("there is no Python 3 here");
#endif
}
