#include "muster/datasets/digit_strokes.h"

#include <array>

#include "muster/core/base/error.h"

namespace muster {
namespace {

using P = StrokePoint;

constexpr std::array kZero{P{-31, -50}, P{31, -50}, P{31, 50}, P{-31, 50}};
constexpr std::array kOne{P{2, -50}, P{0, 50}};
constexpr std::array kOneFlag{P{2, -50}, P{-20, -26}};
constexpr std::array kOneFoot{P{-20, 50}, P{20, 50}};
constexpr std::array kTwo{P{-27, -26}, P{-22, -52}, P{26, -56}, P{32, -14},
                          P{2, 16},    P{-30, 49},  P{-30, 49}, P{31, 49}};
constexpr std::array kThree{P{-25, -42}, P{-8, -54}, P{29, -50}, P{27, -6}, P{-7, -4},
                            P{-7, -4},   P{33, -2},  P{33, 50},  P{-6, 54}, P{-28, 38}};
constexpr std::array kFourAngle{P{8, -50}, P{-31, 16}, P{-31, 16}, P{32, 16}};
constexpr std::array kFourStem{P{13, -12}, P{11, 50}};
constexpr std::array kFive{P{27, -49}, P{-20, -49}, P{-20, -49}, P{-24, -7}, P{-24, -7},
                           P{2, -20},  P{33, -10},  P{33, 50},   P{-4, 54},  P{-27, 38}};
constexpr std::array kSix{P{20, -49}, P{-14, -38}, P{-32, 16}, P{-26, 54},
                          P{30, 56},  P{33, 0},    P{-6, -4},  P{-27, 22}};
constexpr std::array kSeven{P{-29, -48}, P{30, -48}, P{30, -48}, P{8, -4}, P{-8, 50}};
constexpr std::array kSevenBar{P{-14, 3}, P{22, 1}};
constexpr std::array kEightTop{P{-25, -51}, P{25, -51}, P{25, -3}, P{-25, -3}};
constexpr std::array kEightBottom{P{-30, -3}, P{30, -3}, P{30, 51}, P{-30, 51}};
constexpr std::array kNineLoop{P{-28, -51}, P{27, -51}, P{27, 1}, P{-28, 1}};
constexpr std::array kNineTail{P{27, -30}, P{27, 14}, P{8, 50}};

constexpr std::array<Stroke, 1> kZeroStrokes{{{kZero, true}}};
constexpr std::array<Stroke, 3> kOneStrokes{{{kOne}, {kOneFlag, false, true}, {kOneFoot, false, true}}};
constexpr std::array<Stroke, 1> kTwoStrokes{{{kTwo}}};
constexpr std::array<Stroke, 1> kThreeStrokes{{{kThree}}};
constexpr std::array<Stroke, 2> kFourStrokes{{{kFourAngle}, {kFourStem}}};
constexpr std::array<Stroke, 1> kFiveStrokes{{{kFive}}};
constexpr std::array<Stroke, 1> kSixStrokes{{{kSix}}};
constexpr std::array<Stroke, 2> kSevenStrokes{{{kSeven}, {kSevenBar, false, true}}};
constexpr std::array<Stroke, 2> kEightStrokes{{{kEightTop, true}, {kEightBottom, true}}};
constexpr std::array<Stroke, 2> kNineStrokes{{{kNineLoop, true}, {kNineTail}}};

constexpr std::array<std::span<const Stroke>, 10> kDigits{
    kZeroStrokes, kOneStrokes, kTwoStrokes,   kThreeStrokes, kFourStrokes,
    kFiveStrokes, kSixStrokes, kSevenStrokes, kEightStrokes, kNineStrokes};

}  // namespace

std::span<const Stroke> strokesOf(int digit) {
  require(digit >= 0 && digit < 10, "strokes: there is no digit {}", digit);
  return kDigits[static_cast<std::size_t>(digit)];
}

}  // namespace muster
