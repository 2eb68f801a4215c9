#include "muster/core/listeners/watch/page/still_page.h"

#include <string_view>

#include "muster/core/base/error.h"
#include "muster/core/listeners/watch/page/page_assets.h"
#include "muster/core/listeners/watch/page/page_json.h"

namespace muster {
namespace {

std::string_view textOf(std::string_view path) {
  for (const auto& asset : pageAssets())
    if (asset.path == path) return asset.text;
  throw InvalidArgument("page: there is no asset of this name");
}

void replace(std::string& text, std::string_view what, std::string_view by) {
  const auto at = text.find(what);
  require(at != std::string::npos, "page: {} is not in its HTML", what);
  text.replace(at, what.size(), by);
}

}  // namespace

std::string stillPage(std::span<const std::string> news) {
  std::string end = "<script type=\"application/json\" id=\"data\">[";
  const char* separator = "";
  for (const auto& one : news) {
    end += separator;
    page_json::appendJson(end, one);
    separator = ",\n";
  }
  end += "]</script>\n<script>";
  end.append(textOf("/dygraph.js")).append("</script>\n<script>").append(textOf("/page.js"));
  end += "</script>\n</body>";
  std::string html(textOf("/"));
  replace(html, "<link rel=\"stylesheet\" href=\"/page.css\">\n",
          "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; script-src "
          "'unsafe-inline'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action "
          "'none'\">\n<style>" +
              std::string(textOf("/page.css")) + "</style>\n");
  replace(html, "<script src=\"/dygraph.js\" defer></script>\n", "");
  replace(html, "<script src=\"/page.js\" defer></script>\n", "");
  replace(html, "</body>", end);
  return html;
}

std::string_view pageTitle() {
  constexpr std::string_view kBegin = "<title>", kEnd = "</title>";
  const auto html = textOf("/");
  const auto begin = html.find(kBegin), end = html.find(kEnd);
  require(begin < end && end != html.npos, "page: its HTML has no title");
  return html.substr(begin, end + kEnd.size() - begin);
}

}  // namespace muster
