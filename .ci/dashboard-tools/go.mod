// Grafana's linter of dashboards, which deploy/observe-check wants, at a pinned version:
//
//	GOBIN=FOLDER go -C .ci/dashboard-tools install tool
module bellwether.invalid/dashboard-tools

go 1.24.0
