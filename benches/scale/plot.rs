//! Pictures of the figures over the number of processes, one a file, in colours for light and dark pages.

use super::text;
use plotters::prelude::*;
use std::path::Path;

const SIZE: (u32, u32) = (640, 320);
const TEXT: RGBColor = RGBColor(128, 128, 128);
const GRID: RGBAColor = RGBAColor(128, 128, 128, 0.3);
const LINES: [RGBColor; 2] = [RGBColor(47, 129, 247), RGBColor(219, 109, 40)];

/// One line of a picture: its name, and its figure for each number of processes.
pub struct Line {
    pub name: &'static str,
    pub points: Vec<(f64, f64)>,
}

/// Writes a picture of these lines, two at most. Both axes are logarithmic, so what grows with the number of
/// processes is a straight line.
pub fn write(path: &Path, title: &str, lines: &[Line]) -> Result<(), String> {
    let points = || lines.iter().flat_map(|line| &line.points);
    let most = |of: fn(&(f64, f64)) -> f64| points().map(of).fold(1.0, f64::max);
    let least = |of: fn(&(f64, f64)) -> f64| points().map(of).fold(f64::INFINITY, f64::min).max(0.1);
    let (across, up) = (least(|p| p.0) / 1.2..most(|p| p.0) * 1.2, least(|p| p.1) / 1.5..most(|p| p.1) * 1.5);
    let area = SVGBackend::new(path, SIZE).into_drawing_area();
    let style = |size| ("sans-serif", size).into_font().color(&TEXT);
    let mut chart = ChartBuilder::on(&area)
        .caption(title, style(16))
        .margin(8)
        .x_label_area_size(36)
        .y_label_area_size(64)
        .build_cartesian_2d(across.log_scale(), up.log_scale())
        .map_err(text)?;
    chart
        .configure_mesh()
        .x_desc("processes")
        .label_style(style(12))
        .axis_style(TEXT)
        .bold_line_style(GRID)
        .light_line_style(TRANSPARENT)
        .draw()
        .map_err(text)?;
    for (line, colour) in lines.iter().zip(LINES) {
        let drawn = LineSeries::new(line.points.iter().copied(), colour.stroke_width(2)).point_size(3);
        let drawn = chart.draw_series(drawn).map_err(text)?;
        drawn
            .label(line.name)
            .legend(move |(x, y)| Rectangle::new([(x, y - 4), (x + 12, y + 4)], colour.filled()));
    }
    let legend = SeriesLabelPosition::UpperLeft;
    chart.configure_series_labels().position(legend).label_font(style(12)).draw().map_err(text)?;
    area.present().map_err(text)
}
