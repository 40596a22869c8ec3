"""The MCP server: the service as tools that an agent finds its way in by their own words."""
