#include "muster/core/listeners/watch/page/page_store.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <span>
#include <utility>

#include "muster/core/listeners/watch/page/page_json.h"

namespace muster {
namespace {

/// Appends a group's smallest, largest and first non-finite point, in their original order.
void appendExtremes(std::vector<PageCurve::Point>& to, std::span<const PageCurve::Point> group) {
  const PageCurve::Point *least = nullptr, *most = nullptr, *bad = nullptr;
  for (const auto& point : group) {
    if (!std::isfinite(point.value)) {
      if (bad == nullptr) bad = &point;
      continue;
    }
    if (least == nullptr || point.value < least->value) least = &point;
    if (most == nullptr || point.value >= most->value) most = &point;
  }
  std::vector<const PageCurve::Point*> kept;
  for (const auto* point : {least, most, bad})
    if (point != nullptr && std::ranges::find(kept, point) == kept.end()) kept.push_back(point);
  std::ranges::sort(kept);  // by position in the group
  for (const auto* point : kept) to.push_back(*point);
}

}  // namespace

bool PageCurve::add(Point point) {
  const bool dropped = std::exchange(continues_, false) && endAt(point.step - 1);
  group_.push_back(point);
  if (group_.size() < groupSize_) return dropped;
  if (groupSize_ == 1)
    points_.push_back(point);
  else
    appendExtremes(points_, group_);
  group_.clear();
  if (points_.size() < kMost) return dropped;
  thin();
  return true;
}

bool PageCurve::endAt(std::int64_t step) {
  std::erase_if(group_, [&](const Point& point) { return point.step > step; });
  return std::erase_if(points_, [&](const Point& point) { return point.step > step; }) > 0;
}

double PageCurve::at(std::int64_t step) const {
  if (points_.empty()) return 0;
  const auto next = std::ranges::find_if(points_, [&](const Point& point) { return point.step >= step; });
  const bool beyond = next == points_.end();
  const Point to = beyond ? points_.back() : *next;
  const Point from = beyond || next == points_.begin() ? Point{} : *(next - 1);
  if (from.step == to.step) return to.value;
  const double share = static_cast<double>(step - from.step) / static_cast<double>(to.step - from.step);
  return from.value + share * (to.value - from.value);
}

void PageCurve::thin() {
  std::vector<Point> fewer;
  for (std::size_t i = 0; i < points_.size(); i += 4)
    appendExtremes(fewer, std::span(points_).subspan(i, std::min<std::size_t>(4, points_.size() - i)));
  points_ = std::move(fewer);
  groupSize_ = groupSize_ == 1 ? 4 : groupSize_ * 2;
}

std::size_t PageStore::curve(std::string_view name) {
  if (const auto known = indices_.find(name); known != indices_.end()) return known->second;
  names_.emplace_back(name);
  curves_.emplace_back();
  return indices_.emplace(std::string(name), curves_.size() - 1).first->second;
}

void PageStore::point(std::string_view name, std::int64_t step, double value) {
  if (curves_[curve(name)].add({step, value})) ++generation_;
}

void PageStore::putBefore(std::string_view name, PageCurve earlier) {
  PageCurve& own = curves_[curve(name)];
  for (const auto& point : own.points()) earlier.add(point);
  own = std::move(earlier);
  ++generation_;
}

void PageStore::begins() {
  if (run_.failed.empty()) return;
  run_.failed.clear();
  ++generation_;
}

void PageStore::failed(std::string why) {
  run_.failed = std::move(why);
  ++generation_;  // clients then receive everything again
}

void PageStore::add(const PageInbox::Content& content) {
  ++version_;
  for (const auto& name : content.newNames) ofInbox_.push_back(curve(name));
  for (const auto& point : content.points) {
    const auto index = ofInbox_[static_cast<std::size_t>(point.series)];
    if (curves_[index].add({point.step, point.value})) ++generation_;
  }
  for (const auto& [name, text] : content.texts) {
    texts_[name] = text;
    textsVersion_ = version_;
  }
  if (content.histograms) {
    histograms_ = content.histograms;
    histogramsVersion_ = version_;
  }
  if (content.progress) {
    progress_ = content.progress;
    progressVersion_ = version_;
  }
  if (!content.network.empty()) {
    network_ = content.network;
    networkVersion_ = version_;
  }
  lost_ += content.lost;
}

std::string PageStore::all() const {
  Seen nothing;
  return news(nothing);
}

std::string PageStore::news(Seen& seen, bool histograms) const {
  const bool all = seen.generation != generation_;
  if (all) seen = {.generation = generation_, .points = {}};
  seen.points.resize(curves_.size());
  std::string parts;
  const char* separator = "";
  for (std::size_t i = 0; i < curves_.size(); ++i) {
    const auto& points = curves_[i].points();
    if (seen.points[i] == points.size()) continue;
    (parts += separator) += "{\"name\":";
    page_json::append(parts, names_[i]);
    if (const auto size = curves_[i].groupSize(); size > 1)
      fmt::format_to(std::back_inserter(parts), ",\"groupSize\":{}", size);
    parts += ",\"points\":[";
    for (std::size_t p = seen.points[i]; p < points.size(); ++p) {
      fmt::format_to(std::back_inserter(parts), "{}[{},", p == seen.points[i] ? "" : ",", points[p].step);
      page_json::append(parts, points[p].value);
      parts += ']';
    }
    parts += "]}";
    separator = ",";
    seen.points[i] = points.size();
  }
  const bool newPoints = !parts.empty();
  std::string json = fmt::format("{{\"all\":{},\"lost\":{},\"series\":[{}]", all, lost_, parts);
  if (all)
    for (const auto& [name, text] :
         {std::pair{"run", &run_.name}, {"group", &run_.group}, {"failed", &run_.failed}})
      if (!text->empty()) {
        fmt::format_to(std::back_inserter(json), ",\"{}\":", name);
        page_json::append(json, *text);
      }
  bool any = all || newPoints;
  const auto section = [&](const char* name, std::int64_t version, std::int64_t& seenVersion, auto append) {
    if (version <= seenVersion) return;
    seenVersion = version;
    any = true;
    fmt::format_to(std::back_inserter(json), ",\"{}\":", name);
    append();
  };
  section("progress", progressVersion_, seen.progress, [&] { page_json::append(json, *progress_); });
  if (histograms)
    section("histograms", histogramsVersion_, seen.histograms,
            [&] { page_json::append(json, *histograms_); });
  section("network", networkVersion_, seen.network, [&] { page_json::appendJson(json, network_); });
  section("texts", textsVersion_, seen.texts, [&] {
    const char* between = "{";
    for (const auto& [name, text] : texts_) {
      json += between;
      page_json::append(json, name);
      json += ':';
      page_json::append(json, text);
      between = ",";
    }
    json += '}';
  });
  return any ? json + "}" : std::string();
}

}  // namespace muster
