#include "muster/core/listeners/progress_text.h"

#include "muster/core/listeners/every.h"
#include "tests/support/test.h"

namespace muster::test {
namespace {

using namespace std::chrono_literals;

const Progress kHalf{.epoch = 1,
                     .epochs = 3,
                     .batches = 50,
                     .batchesPerEpoch = 100,
                     .examples = 6400,
                     .elapsed = 8s,
                     .score = 0.12345};

/// `kHalf` with a change.
Progress half(const std::function<void(Progress&)>& change) {
  Progress progress = kHalf;
  change(progress);
  return progress;
}

TEST_CASE("numbers and times are short") {
  CHECK(textOf(durationText(0), durationText(6.2), durationText(3599), durationText(3723)) ==
        "0:00 0:07 59:59 1:02:03");
  CHECK(textOf(scoreDigits(0.12345), scoreDigits(-99999), scoreDigits(99999.99994), scoreDigits(1e5),
               scoreDigits(-3.4e38),
               scoreDigits(kNan)) == "0.1235 -99999.0000 99999.9999 1.000e+05 -3.400e+38 nan");
  CHECK(textOf(meter(0, 12), meter(0.5, 12), meter(1, 12)) == "[>         ] [=====>    ] [==========]");
}

TEST_CASE("a line tells how far an epoch is, how fast, and what is left") {
  CHECK(progressLine(kHalf) == "epoch 1/3: 50 % (50 of 100 batches), 800 samples/s, score 0.1235, 0:08 left");
  CHECK(progressLine({.batches = 1}) == "epoch 1/1: 1 batch");
  CHECK(progressLine(half([](Progress& p) { p.batchesPerEpoch.reset(); })) ==
        "epoch 1/3: 50 batches, 800 samples/s, score 0.1235");
  CHECK(epochLine(kHalf) == "epoch 1/3: score 0.1235, 6400 examples in 8.0 s, 800 samples/s");
  for (const auto& [seconds, words] :
       {std::pair(0.04, "0.0 s"), {59.94, "59.9 s"}, {59.96, "1:00"}, {75, "1:15"}})
    CHECK_CONTAINS(epochLine(half([&](Progress& p) { p.elapsed = std::chrono::duration<double>(seconds); })),
                   fmt::format("6400 examples in {}, ", words));
}

TEST_CASE("a bar leaves out what does not fit, the least important first, and is never wider than asked") {
  // All parts take 62 columns, without the rate 47; a bar takes a blank and at least 8.
  for (const auto& [columns, bar] :
       {std::pair(100,
                  "epoch 1/3  50% [=================>                 ]  50/100  800 samples/s  score "
                  "0.1235  0:08 left"),
        {62, "epoch 1/3  50%  50/100  800 samples/s  score 0.1235  0:08 left"},
        {61, "epoch 1/3  50% [=====>     ]  50/100  score 0.1235  0:08 left"},
        {50, "epoch 1/3  50%  50/100  score 0.1235  0:08 left"},
        {46, "epoch 1/3  50%  score 0.1235  0:08 left"},
        {30, "epoch 1/3  50%  score 0.1235"},
        {14, "epoch 1/3  50%"},
        {9, "epoch 1/3"},
        {5, "epoch"},
        {0, ""},
        {-1, ""}})
    CHECK(progressBar(kHalf, columns) == bar);
  CHECK(progressBar(half([](Progress& p) { p.batches = 100; }), 59) ==
        "epoch 1/3 100% [========]  100/100  score 0.1235  0:00 left");
  CHECK(progressBar({.epoch = 2, .epochs = 2, .batches = 0, .batchesPerEpoch = 100}, 40) ==
        "epoch 2/2   0% [>               ]  0/100");
  CHECK(progressBar(half([](Progress& p) { p.batchesPerEpoch.reset(); }), 100) ==
        "epoch 1/3  50 batches  800 samples/s  score 0.1235");
  for (int columns = 0; columns < 150; ++columns)
    for (const std::int64_t batches : {0, 1, 50, 99, 100, 101})
      CHECK(std::ssize(progressBar(half([&](Progress& p) { p.batches = batches; }), columns)) <= columns);
}

TEST_CASE("a count that jumps passes a multiple once") {
  Every third(3), never(0);
  CHECK_FALSE(third.passed(2));
  CHECK(third.passed(3));
  CHECK_FALSE(third.passed(5));
  CHECK(third.passed(13));  // 6, 9 and 12 at once
  CHECK_FALSE(third.passed(14));
  third.start(29);
  CHECK(third.passed(30));
  CHECK_FALSE(never.passed(1000));
}

}  // namespace
}  // namespace muster::test
