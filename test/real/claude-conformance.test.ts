import { agentDriverConformance } from "../conformance/agent-driver.ts";
import { claudeSubject } from "./claude.ts";

agentDriverConformance("claude", claudeSubject);
