#include "examples/muster/predict_pictures.h"

#include <fmt/format.h>

#include <algorithm>

#include "examples/support/paths.h"
#include "muster/core/base/error.h"
#include "muster/core/io/input_file.h"
#include "muster/datasets/picture_model.h"

namespace program {
namespace {

using namespace muster;

/// A field of a CSV file, quoted if necessary.
std::string field(std::string_view text) {
  if (text.find_first_of(",\"\r\n") == text.npos) return std::string(text);
  std::string quoted = "\"";
  for (const char c : text) quoted.append(c == '"' ? 2 : 1, c);
  return quoted.append("\"");
}

/// A row for each picture: its file, the predicted class, its probability and those of all classes.
std::string textOf(const PicturePredictions& predictions) {
  std::string text = "file,prediction,probability";
  for (const auto& name : predictions.names) text += "," + field("probability of " + name);
  text += '\n';
  const auto width = predictions.names.size();
  const auto all = predictions.probabilities.span<float>();
  for (std::size_t i = 0; i < predictions.files.size(); ++i) {
    const auto row = all.subspan(i * width, width);
    text += fmt::format("{},{},{}", field(predictions.files[i]), field(predictions.classes[i]),
                        std::ranges::max(row));
    for (const float probability : row) text += fmt::format(",{}", probability);
    text += '\n';
  }
  return text;
}

}  // namespace

std::string pictureRows(const Call& call, const std::filesystem::path& out) {
  require(call.others.size() == 1,
          "muster predict {} needs a picture or a folder of pictures, as in muster predict {} new.jpg",
          call.file, call.file);
  const auto& pictures = call.others.front();
  example::Paths paths;
  paths.reads("the model", call.file);
  if (fileTypeOf(pictures) == std::filesystem::file_type::directory)
    paths.readsPictures("the pictures", pictures);
  else
    paths.reads("the picture", pictures);
  paths.writesResult("--out", out);
  paths.check();
  return textOf(PictureModel::load(call.file).predict(pictures));
}

}  // namespace program
