#include "examples/mnist_convnet/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <system_error>
#include <vector>

#include "examples/mnist_convnet/picture.h"
#include "muster/core/base/error.h"
#include "muster/core/io/atomic_file.h"

namespace example {
namespace {

using namespace muster;

constexpr Colour kPaper{255, 255, 255};
constexpr Colour kInk{38, 50, 56};
constexpr Colour kLine{224, 228, 231};
constexpr Colour kRight{46, 125, 50};
constexpr Colour kWrong{198, 40, 40};

/// A test image that was taken for another class.
struct Mistake {
  std::int64_t image = 0;
  int actual = 0;
  int predicted = 0;
  float sureness = 0;  // the predicted class's probability
};

/// The test images come in the order of the set, so a batch's rows are known images.
std::vector<Mistake> findMistakes(MultiLayerNetwork& network, ImageSetIterator& test) {
  std::vector<Mistake> mistakes;
  Batch batch;
  Tensor predictions;
  std::int64_t image = 0;
  test.reset(0);
  while (test.next(batch)) {
    static_cast<Model&>(network).output(batch, predictions);
    const auto classes = predictions.shape()[1];
    const float* row = predictions.data<float>();
    for (std::int64_t i = 0; i < batch.examples(); ++i, ++image, row += classes) {
      const float* const best = std::max_element(row, row + classes);
      const int actual = test.set()->label(image);
      if (best - row != actual) mistakes.push_back({image, actual, static_cast<int>(best - row), *best});
    }
  }
  std::ranges::stable_sort(mistakes, std::ranges::greater{}, &Mistake::sureness);
  return mistakes;
}

void drawCentred(Picture& picture, int x, int y, int width, std::string_view text, int scale, Colour colour) {
  picture.drawText(x + (width - Picture::textWidth(text, scale)) / 2, y, text, scale, colour);
}

/// "TRUE>PREDICTED" and its like, in two colours.
void drawPair(Picture& picture, int x, int y, std::string_view actual, std::string_view predicted,
              int scale) {
  const auto draw = [&](std::string_view text, Colour colour) {
    picture.drawText(x, y, text, scale, colour);
    x += Picture::textWidth(text, scale) + scale;  // and the gap before the next sign
  };
  draw(actual, kRight);
  draw(">", kInk);
  draw(predicted, kWrong);
}

/// A grid of images, each with "true>predicted" below, and these two words above them all.
Picture drawMistakes(const std::vector<Mistake>& mistakes, const ImageSet& images) {
  constexpr int kColumns = 10, kMostRows = 8, kScale = 3, kGap = 12, kTextScale = 2, kTextGap = 5;
  const int side = static_cast<int>(images.imageShape()[2]);
  const int count = std::min<int>(kColumns * kMostRows, static_cast<int>(mistakes.size()));
  const int columns = std::min(count, kColumns), rows = (count + kColumns - 1) / kColumns;
  const int tile = side * kScale, pitchX = tile + kGap;
  const int pitchY = tile + kTextGap + Picture::textHeight(kTextScale) + kGap;
  constexpr std::string_view kTrue = "TRUE", kPredicted = "PREDICTED";
  const int legend = Picture::textWidth("TRUE>PREDICTED", kTextScale),
            top = Picture::textHeight(kTextScale) + kGap;
  Picture picture(kGap + std::max(columns * pitchX, legend + kGap), kGap + top + rows * pitchY, kPaper);
  drawPair(picture, kGap, kGap, kTrue, kPredicted, kTextScale);
  for (int i = 0; i < count; ++i) {
    const auto& mistake = mistakes[static_cast<std::size_t>(i)];
    const int x = kGap + i % kColumns * pitchX, y = kGap + top + i / kColumns * pitchY;
    picture.fill(x - 1, y - 1, tile + 2, tile + 2, kLine);
    picture.drawImage(x, y, images.image(mistake.image), side, kScale, kPaper, kInk);
    const int textX = x + (tile - Picture::textWidth("0>0", kTextScale)) / 2;
    const int textY = y + tile + kTextGap;
    drawPair(picture, textX, textY, fmt::format("{}", mistake.actual), fmt::format("{}", mistake.predicted),
             kTextScale);
  }
  return picture;
}

/// How strongly a cell is coloured: what is right by its share of the class, what is wrong beside the
/// largest error, as a mistake made ten times in a thousand would be invisible otherwise.
Colour cellColour(const Evaluation& evaluation, std::int64_t actual, std::int64_t predicted,
                  std::int64_t largestError) {
  const auto count = static_cast<double>(evaluation.count(actual, predicted));
  if (count == 0) return kPaper;
  if (actual == predicted) return mix(kPaper, kRight, 0.15 + 0.6 * evaluation.recall(actual));
  return mix(kPaper, kWrong, 0.1 + 0.7 * std::sqrt(count / static_cast<double>(largestError)));
}

Picture drawConfusion(const Evaluation& evaluation) {
  constexpr int kCell = 52, kMargin = 64, kEdge = 16, kTextScale = 2, kLineHeight = 18;
  const auto classes = static_cast<int>(evaluation.classes());
  std::int64_t largestError = 1;
  for (int a = 0; a < classes; ++a)
    for (int p = 0; p < classes; ++p)
      if (a != p) largestError = std::max(largestError, evaluation.count(a, p));
  const int side = kMargin + classes * kCell;
  Picture picture(side + kEdge, side + kEdge, kPaper);
  drawCentred(picture, kMargin, kEdge - 4, classes * kCell, "PREDICTED", kTextScale, kInk);
  constexpr std::string_view kTrue = "TRUE";
  for (std::size_t i = 0; i < kTrue.size(); ++i)
    picture.drawText(kEdge - 4, kMargin + classes * kCell / 2 + (static_cast<int>(i) - 2) * kLineHeight,
                     kTrue.substr(i, 1), kTextScale, kInk);
  picture.fill(kMargin, kMargin, classes * kCell + 1, classes * kCell + 1, kLine);
  for (int a = 0; a < classes; ++a) {
    const int at = kMargin + a * kCell, textAt = at + (kCell - Picture::textHeight(kTextScale)) / 2;
    drawCentred(picture, at, kMargin - 8 - Picture::textHeight(kTextScale), kCell, fmt::format("{}", a),
                kTextScale, kInk);
    picture.drawText(kMargin - 22, textAt, fmt::format("{}", a), kTextScale, kInk);
    for (int p = 0; p < classes; ++p) {
      const int x = kMargin + p * kCell;
      picture.fill(x + 1, at + 1, kCell - 1, kCell - 1, cellColour(evaluation, a, p, largestError));
      if (const auto count = evaluation.count(a, p); count > 0 || a == p)
        drawCentred(picture, x, textAt, kCell, fmt::format("{}", count), kTextScale, kInk);
    }
  }
  return picture;
}

std::string confusionText(const Evaluation& evaluation, const DataSets& data, std::string_view remark) {
  auto text = fmt::format("{}, from {}\n{}{}\n{}", data.title, data.origin, remark,
                          remark.empty() ? "" : "\n", evaluation.summary());
  if (!data.classNames.empty()) text += "\nclasses\n";
  for (std::size_t i = 0; i < data.classNames.size(); ++i)
    text += fmt::format("{:>10} {}\n", i, data.classNames[i]);
  return text;
}

}  // namespace

std::string writeReport(const std::filesystem::path& directory, const Evaluation& evaluation,
                        MultiLayerNetwork& network, DataSets& data, std::string_view remark) {
  std::error_code problem;
  std::filesystem::create_directories(directory, problem);
  if (problem) throw FileError(directory, fmt::format("cannot be made: {}", problem.message()));
  writeFileAtomically(directory / "confusion.txt", confusionText(evaluation, data, remark));
  drawConfusion(evaluation).save(directory / "confusion.png");
  const auto mistakes = findMistakes(network, *data.test);
  if (mistakes.empty())
    return fmt::format("{}: confusion.txt and .png; nothing was misclassified", directory.string());
  drawMistakes(mistakes, *data.test->set()).save(directory / "misclassified.png");
  return fmt::format("{}: confusion.txt and .png, misclassified.png", directory.string());
}

}  // namespace example
