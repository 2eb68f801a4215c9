#include "muster/core/io/scores_json.h"

#include <cmath>
#include <numeric>
#include <vector>

#include "muster/core/io/json_fields.h"

namespace muster {
namespace {

void putFinite(JsonWriter& json, std::string_view name, double value) {
  if (std::isfinite(value)) json.put(name, value);
}

void putMeans(JsonWriter& json, const auto& scores) {
  json.put("accuracy", scores.accuracy());
  json.put("precision", scores.precision());
  json.put("recall", scores.recall());
  json.put("f1", scores.f1());
}

void write(JsonWriter& json, const Evaluation& scores) {
  putMeans(json, scores);
  const auto classes = static_cast<std::size_t>(scores.classes());
  const auto row = [&](std::size_t c) {
    return std::span(scores.confusionMatrix()).subspan(c * classes, classes);
  };
  json.list("classes", classes, [&](std::size_t c, JsonWriter& one) {
    const auto place = static_cast<std::int64_t>(c);
    one.put("class", place);
    if (!scores.classNames().empty()) one.put("name", std::string_view(scores.classNames()[c]));
    one.put("examples", std::accumulate(row(c).begin(), row(c).end(), std::int64_t{0}));
    one.put("precision", scores.precision(place));
    one.put("recall", scores.recall(place));
    one.put("f1", scores.f1(place));
    one.put("predictedAs", std::vector<double>(row(c).begin(), row(c).end()));
  });
}

void write(JsonWriter& json, const RegressionEvaluation& scores) {
  json.list("columns", static_cast<std::size_t>(scores.columns()), [&](std::size_t c, JsonWriter& one) {
    const auto place = static_cast<std::int64_t>(c);
    if (!scores.targets().empty()) one.put("name", std::string_view(scores.targets()[c].name));
    putFinite(one, "mse", scores.meanSquaredError(place));
    putFinite(one, "rmse", scores.rootMeanSquaredError(place));
    putFinite(one, "mae", scores.meanAbsoluteError(place));
    putFinite(one, "r2", scores.r2(place));
    putFinite(one, "correlation", scores.correlation(place));
  });
}

void write(JsonWriter& json, const BinaryEvaluation& scores) {
  putMeans(json, scores);
  putFinite(json, "auc", scores.auc());
  putFinite(json, "averagePrecision", scores.averagePrecision());
  json.list("labels", static_cast<std::size_t>(scores.labels()), [&](std::size_t label, JsonWriter& one) {
    const auto place = static_cast<std::int64_t>(label);
    one.put("label", place);
    if (!scores.labelNames().empty()) one.put("name", std::string_view(scores.labelNames()[label]));
    one.put("accuracy", scores.accuracy(place));
    one.put("precision", scores.precision(place));
    one.put("recall", scores.recall(place));
    one.put("f1", scores.f1(place));
    putFinite(one, "auc", scores.auc(place));
    putFinite(one, "averagePrecision", scores.averagePrecision(place));
  });
}

}  // namespace

std::string scoresJson(const AnyEvaluation& evaluation) {
  JsonWriter json;
  json.put("task", nameOf(evaluation.task()));
  json.put("examples", evaluation.examples());
  putFinite(json, "loss", evaluation.loss());
  switch (evaluation.task()) {
    case Task::Classification:
      write(json, evaluation.classification());
      break;
    case Task::Regression:
      write(json, evaluation.regression());
      break;
    case Task::Labels:
      write(json, evaluation.labels());
      break;
  }
  return json.text();
}

}  // namespace muster
