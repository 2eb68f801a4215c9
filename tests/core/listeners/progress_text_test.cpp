#include "muster/core/listeners/progress_text.h"

#include "muster/core/listeners/every.h"
#include "tests/support/test.h"

using namespace muster;
using namespace std::chrono_literals;

namespace {

const Progress kHalf{.epoch = 1,
                     .epochs = 3,
                     .batches = 50,
                     .batchesPerEpoch = 100,
                     .examples = 6400,
                     .elapsed = 8s,
                     .score = 0.12345};

}  // namespace

TEST_CASE("numbers and times are short") {
  CHECK(durationText(0) == "0:00");
  CHECK(durationText(6.2) == "0:07");
  CHECK(durationText(3599) == "59:59");
  CHECK(durationText(3723) == "1:02:03");
  CHECK(scoreDigits(0.12345) == "0.1235");
  CHECK(scoreDigits(-99999) == "-99999.0000");
  CHECK(scoreDigits(1.2345e35) == "1.234e+35");
  CHECK(meter(0, 12) == "[>         ]");
  CHECK(meter(0.5, 12) == "[=====>    ]");
  CHECK(meter(1, 12) == "[==========]");
}

TEST_CASE("a line tells how far an epoch is, how fast, and what is left") {
  CHECK(progressLine(kHalf) == "epoch 1/3: 50 % (50 of 100 batches), 800 samples/s, score 0.1235, 0:08 left");
  CHECK(progressLine({.batches = 1}) == "epoch 1/1: 1 batch");
  CHECK(epochLine(kHalf) == "epoch 1/3: score 0.1235, 6400 examples in 8.0 s, 800 samples/s");
  Progress slow = kHalf;
  slow.elapsed = 75s;
  CHECK(epochLine(slow) == "epoch 1/3: score 0.1235, 6400 examples in 1:15, 85 samples/s");
}

TEST_CASE("a bar leaves out what does not fit, the least important first") {
  // All parts take 62 columns, without the rate 47; a bar takes a blank and at least 8.
  CHECK(
      progressBar(kHalf, 100) ==
      "epoch 1/3  50% [=================>                 ]  50/100  800 samples/s  score 0.1235  0:08 left");
  CHECK(progressBar(kHalf, 62) == "epoch 1/3  50%  50/100  800 samples/s  score 0.1235  0:08 left");
  CHECK(progressBar(kHalf, 60) == "epoch 1/3  50% [=====>    ]  50/100  score 0.1235  0:08 left");
  CHECK(progressBar(kHalf, 50) == "epoch 1/3  50%  50/100  score 0.1235  0:08 left");
  CHECK(progressBar(kHalf, 9) == "epoch 1/3");
  CHECK(progressBar(kHalf, 5) == "epoch");
  CHECK(progressBar(kHalf, 0) == "");
  for (int columns = 1; columns < 120; ++columns)
    CHECK(progressBar(kHalf, columns).size() <= static_cast<std::size_t>(columns));
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
