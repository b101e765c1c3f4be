#include "harness/chart.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <fmt/format.h>
#include <fstream>
#include <limits>
#include <string_view>

namespace kumi::bench {
namespace {

constexpr double frame_left = 70, frame_right = 560, frame_top = 50, frame_bottom = 380;
constexpr double legend_left = frame_right + 20;
constexpr double picture_width = 800, picture_height = 440;
constexpr double x_marks_max = 12;

/// Of a power of two: 4096, 16K, 8M.
std::string short_number(double power) {
    constexpr double kilo = 1 << 10, mega = 1 << 20;
    if (power >= mega) return fmt::format("{:.0f}M", power / mega);
    if (power >= 16 * kilo) return fmt::format("{:.0f}K", power / kilo);
    return fmt::format("{:.0f}", power);
}

/// Colours that people who cannot tell red from green can tell apart, too. Curves also have different marks.
constexpr std::array<std::string_view, 6> colours{"#d9532c", "#2f6fb5", "#7a7a7a", "#3d9970", "#a15fb0", "#1a1a1a"};
constexpr std::array<std::string_view, 6> dashes{"none", "6 3", "2 3", "9 3 2 3", "1 2", "12 4"};

struct Range {
    double low = std::numeric_limits<double>::max();
    double high = 0;

    void take(double value) {
        low = std::min(low, value);
        high = std::max(high, value);
    }
    /// Outwards to whole powers of `base`.
    void round(double base) {
        const double step = std::log(base);
        low = std::pow(base, std::floor(std::log(low) / step + 1e-9));
        high = std::pow(base, std::ceil(std::log(high) / step - 1e-9));
        if (low == high) high *= base;
    }
    double part(double value) const { return std::log(value / low) / std::log(high / low); }
};

class Picture {
public:
    Picture(Range x, Range y) : x_(x), y_(y) {}

    void frame(const std::string& title, const std::string& x_name, const std::string& y_name) {
        text(frame_left, 28, "start", title, 16);
        text((frame_left + frame_right) / 2, picture_height - 14, "middle", x_name);
        svg_ +=
            fmt::format("<text x='18' y='{0:.0f}' transform='rotate(-90 18 {0:.0f})' text-anchor='middle'>{1}</text>\n",
                        (frame_top + frame_bottom) / 2, y_name);
        const double powers = std::log2(x_.high / x_.low); // as many as there is room for are marked
        const double step = std::exp2(std::ceil(powers / x_marks_max));
        for (double x = x_.low; x <= x_.high * 1.001; x *= step) {
            line(at_x(x), frame_top, at_x(x), frame_bottom);
            text(at_x(x), frame_bottom + 18, "middle", short_number(x));
        }
        for (double y = y_.low; y <= y_.high * 1.001; y *= 10) {
            line(frame_left, at_y(y), frame_right, at_y(y));
            text(frame_left - 8, at_y(y) + 4, "end", y < 1 ? fmt::format("{:g}", y) : fmt::format("{:.0f}", y));
        }
    }

    void curve(const Curve& curve, std::size_t number) {
        const std::string_view colour = colours[number % colours.size()], dash = dashes[number % dashes.size()];
        std::string points;
        for (const auto& [x, y] : curve.points) points += fmt::format("{:.1f},{:.1f} ", at_x(x), at_y(y));
        svg_ += fmt::format("<polyline points='{}' fill='none' stroke='{}' stroke-width='2' stroke-dasharray='{}'/>\n",
                            points, colour, dash);
        for (const auto& [x, y] : curve.points)
            svg_ +=
                fmt::format("<circle cx='{:.1f}' cy='{:.1f}' r='3.5' fill='{}'><title>{}: {:.4g}</title></circle>\n",
                            at_x(x), at_y(y), colour, curve.name, y);
        const double legend_y = frame_top + 12 + 24 * static_cast<double>(number);
        svg_ +=
            fmt::format("<line x1='{}' y1='{}' x2='{}' y2='{}' stroke='{}' stroke-width='2' stroke-dasharray='{}'/>\n",
                        legend_left, legend_y, legend_left + 30, legend_y, colour, dash);
        text(legend_left + 38, legend_y + 4, "start", curve.name);
    }

    std::string svg() const {
        return fmt::format("<svg xmlns='http://www.w3.org/2000/svg' width='{0}' height='{1}' viewBox='0 0 {0} {1}' "
                           "font-family='sans-serif' font-size='12'>\n"
                           "<rect width='100%' height='100%' fill='white'/>\n{2}</svg>\n",
                           picture_width, picture_height, svg_);
    }

private:
    double at_x(double x) const { return frame_left + x_.part(x) * (frame_right - frame_left); }
    double at_y(double y) const { return frame_bottom - y_.part(y) * (frame_bottom - frame_top); }
    void line(double x1, double y1, double x2, double y2) {
        svg_ +=
            fmt::format("<line x1='{:.1f}' y1='{:.1f}' x2='{:.1f}' y2='{:.1f}' stroke='#dddddd'/>\n", x1, y1, x2, y2);
    }
    void text(double x, double y, std::string_view anchor, const std::string& what, int size = 12) {
        svg_ += fmt::format("<text x='{:.1f}' y='{:.1f}' text-anchor='{}' font-size='{}'>{}</text>\n", x, y, anchor,
                            size, what);
    }

    Range x_, y_;
    std::string svg_;
};

} // namespace

Curve measured_curve(const Table& table, const std::string& who, const std::string& name,
                     const std::vector<std::pair<double, std::string>>& rows) {
    Curve curve{name, {}};
    for (const auto& [x, row] : rows)
        if (const auto value = table.median(who, row); value && *value > 0) curve.points.emplace_back(x, *value);
    return curve;
}

std::string chart(const std::string& title, const std::string& x_name, const std::string& y_name,
                  const std::vector<Curve>& curves) {
    Range x, y;
    for (const Curve& curve : curves)
        for (const auto& point : curve.points) x.take(point.first), y.take(point.second);
    x.round(2);
    y.round(10);
    Picture picture(x, y);
    picture.frame(title, x_name, y_name);
    for (std::size_t number = 0; number < curves.size(); ++number) picture.curve(curves[number], number);
    return picture.svg();
}

void draw(const std::string& folder, const std::string& file, const std::string& picture, Table& table) {
    const std::string path = folder + "/" + file;
    std::ofstream to(path);
    to << picture << std::flush;
    table.note(to ? "drawn: " + path : path + ": cannot be written");
}

} // namespace kumi::bench
