// The texts are tested in progress_text_test.
#include "muster/core/listeners/progress_listener.h"

#include "muster/core/base/log.h"
#include "tests/support/environment.h"
#include "tests/support/fake_trainer.h"
#include "tests/support/pseudo_terminal.h"
#include "tests/support/terminal_screen.h"
#include "tests/support/test.h"
#include "tests/support/toy_wrapper.h"

namespace muster::test {
namespace {

using namespace std::chrono_literals;
using ScreenLines = std::vector<std::string>;

struct Shown {
  explicit Shown(bool terminal)
      : listener({.terminal = {.terminal = terminal,
                               .write =
                                   [this](std::string_view text) {
                                     plain += text;
                                     screen.write(text);
                                   },
                               .columns = [] { return 76; },
                               .now = [this] { return clock; }}}) {}
  void start(std::int64_t epochs = 2) {
    listener.onFitStart({.trainer = trainer, .firstEpoch = 0, .epochs = epochs, .batchesPerEpoch = 100});
    listener.onEpochStart({.trainer = trainer});
  }
  void merge(std::int64_t batches, std::int64_t examples, double score) {
    listener.onMerge({.trainer = trainer, .batchesInEpoch = batches, .examples = examples, .score = score});
  }

  EchoModel model;
  FakeTrainer trainer{model};
  TerminalScreen screen{76};
  std::string plain;
  std::chrono::steady_clock::time_point clock;
  ProgressListener listener;
};

TEST_CASE("a terminal gets ten redraws a second, one line an epoch, and no bar at the end") {
  Shown shown(true);
  const auto& screen = shown.screen;
  shown.start();
  for (std::int64_t epoch = 0; epoch < 2; ++epoch) {
    shown.listener.onEpochStart({.trainer = shown.trainer, .epoch = epoch});
    const int before = screen.writes;
    for (int i = 1; i <= 100; ++i) {  // a second of merges, 10 ms apart
      shown.clock += 10ms;
      shown.merge(i, 64, 0.5);
    }
    CHECK(screen.writes == before + 10);
    CHECK(screen.lines.back() ==
          (epoch == 0 ? "epoch 1/2 100% [========]  100/100  6400 samples/s  score 0.5000  0:00 left"
                      : "epoch 2/2  91% [========>]  91/100  6400 samples/s  score 0.5000  0:01 left"));
    shown.clock += 1s;
    shown.listener.onEpochEnd({shown.trainer, epoch, 100, 0.5, 6400});
    CHECK(screen.lines.back().empty());
  }
  shown.clock += 1s;
  shown.merge(1, 64, 0.5);  // a failure leaves a bar
  CHECK_FALSE(screen.lines.back().empty());
  shown.listener.onFitEnd(shown.trainer);
  CHECK(screen.lines == ScreenLines{"epoch 1/2: score 0.5000, 6400 examples in 2.0 s, 3200 samples/s",
                                    "epoch 2/2: score 0.5000, 6400 examples in 2.0 s, 3200 samples/s", ""});
  CHECK_FALSE(screen.wrapped);
}

TEST_CASE("however short the epochs are, the bar is redrawn ten times a second and shown during each") {
  Shown shown(true);
  const auto& screen = shown.screen;
  shown.start(1000);
  int redrawn = 0;
  for (std::int64_t epoch = 0; epoch < 100; ++epoch) {  // a second of epochs, 10 ms each
    shown.listener.onEpochStart({.trainer = shown.trainer, .epoch = epoch});
    CHECK(screen.lines.back().empty() == (epoch < 10));
    const int before = screen.writes;
    shown.clock += 10ms;
    shown.merge(100, 6400, 0.5);
    redrawn += screen.writes - before;
    if (epoch >= 9)
      CHECK(screen.lines.back().starts_with(fmt::format("epoch {}/1000 ", (epoch + 1) / 10 * 10)));
    shown.listener.onEpochEnd({shown.trainer, epoch, 100, 0.5, 6400});
    CHECK(screen.lines.back().empty());
  }
  CHECK(redrawn == 10);
  // A long epoch's last bar does not return: it would stay until the next merge.
  shown.listener.onEpochStart({.trainer = shown.trainer, .epoch = 100});
  shown.clock += 2s;
  shown.merge(100, 6400, 0.5);
  shown.listener.onEpochEnd({shown.trainer, 100, 100, 0.5, 6400});
  shown.listener.onEpochStart({.trainer = shown.trainer, .epoch = 101});
  CHECK(screen.lines.back().empty());
  shown.listener.onFitEnd(shown.trainer);
  CHECK(screen.lines.size() == 102);
  CHECK(screen.lines.back().empty());
}

TEST_CASE("log lines appear above the bar, and the previous sink is restored") {
  std::optional<Shown> shown(std::in_place, true);
  TerminalScreen& screen = shown->screen;
  int logged = 0;
  const LogSink before = setLogSink([&](LogLevel, std::string_view text) {
    ++logged;
    if (shown) screen.write("log: " + std::string(text) + "\n");
  });
  shown->start();
  shown->clock += 1s;
  shown->merge(50, 64, 0.5);
  const std::string bar = screen.lines.back();
  std::thread([] { logInfo("from a worker"); }).join();
  CHECK(screen.lines == ScreenLines{"log: from a worker", bar});
  shown->listener.onFitEnd(shown->trainer);
  logInfo("after the fit");
  CHECK(screen.lines == ScreenLines{"log: from a worker", "log: after the fit", ""});
  shown->start();
  shown.reset();
  logInfo("after a listener that never saw the end");
  CHECK(logged == 3);
  setLogSink(before);
}

TEST_CASE("without a terminal there is a line every ten seconds and one an epoch") {
  Shown shown(false);
  shown.start(1);
  for (int i = 1; i <= 25; ++i) {
    shown.clock += 1s;
    shown.merge(4 * i, 256, i <= 10 ? 1.0 : 0.5);
  }
  shown.listener.onEpochEnd({shown.trainer, 0, 100, 0.7, 6400});
  shown.listener.onFitEnd(shown.trainer);
  CHECK(shown.plain ==
        "epoch 1/1: 40 % (40 of 100 batches), 256 samples/s, score 1.0000, 0:15 left\n"
        "epoch 1/1: 80 % (80 of 100 batches), 256 samples/s, score 0.7500, 0:05 left\n"
        "epoch 1/1: score 0.7000, 6400 examples in 25.0 s, 256 samples/s\n");
}

TEST_CASE("a model that has trained before continues to count its epochs") {
  Shown shown(false);
  shown.listener.onFitStart({.trainer = shown.trainer, .firstEpoch = 5, .epochs = 5});
  shown.listener.onEpochStart({.trainer = shown.trainer, .epoch = 5});
  shown.clock += 2s;
  shown.listener.onEpochEnd({shown.trainer, 5, 10, 0.25, 100});
  CHECK(shown.plain == "epoch 6/10: score 0.2500, 100 examples in 2.0 s, 50 samples/s\n");
}

TEST_CASE("fit shows its progress in a terminal by itself, unless it is told not to or a listener does") {
  const Environment kind("TERM", "xterm");
  PseudoTerminal terminal(100, 24);
  /// How often a model, and a wrapper of two workers, end an epoch on this terminal in two epochs each.
  const auto epochsShown = [&](int descriptor, const Listeners& listeners = {}) {
    auto data = ToyIterator::ofValues({1, 2, 3, 4});
    ToyModel alone, joint;
    alone.setListeners(listeners);
    const StandardError to(descriptor);
    auto wrapper = toyWrapper(joint, 2).listeners(listeners).build();
    std::string counts;
    for (const auto& fit :
         {std::function<void()>([&] { alone.fit(data, 2); }), {[&] { wrapper.fit(data, 2); }}}) {
      fit();
      const std::string text = terminal.take();
      for (const std::string epoch : {"epoch 1/2: score ", "epoch 2/2: score "}) {
        const auto at = text.find(epoch);
        counts += at == text.npos ? "0 " : text.find(epoch, at + 1) == text.npos ? "1 " : "2 ";
      }
      if (counts.starts_with("0")) CHECK(text == "");
    }
    return counts;
  };
  showProgress(true);
  CHECK(epochsShown(terminal.descriptor()) == "1 1 1 1 ");
  CHECK(epochsShown(terminal.descriptor(), {std::make_shared<ProgressListener>()}) == "1 1 1 1 ");
  const TemporaryDirectory directory;
  const int file = ::open((directory / "log").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  CHECK(epochsShown(file) == "0 0 0 0 ");
  ::close(file);
  CHECK(readFile(directory / "log").empty());
  showProgress(false);
  CHECK(epochsShown(terminal.descriptor()) == "0 0 0 0 ");
}

}  // namespace
}  // namespace muster::test
